import unittest

from tests.gpu import case_loads, cases

LOG = """node:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
node:1:2 [0] NCCL INFO NET/Plugin: Loaded net plugin R2CC (v11)
node:1:2 [0] NCCL INFO Using network R2CC
node:1:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/R2CC/0
node:1:9 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [receive] via NET/R2CC/1
"""


class CasesTest(unittest.TestCase):

  def test_names_are_unique_and_listed(self):
    names = [case.name for case in cases.CASES]
    self.assertEqual(len(set(names)), len(names))
    self.assertEqual(len(cases.listing(False).splitlines()), len(names))

  def test_quick_is_no_slower(self):
    for case in cases.CASES:
      self.assertLessEqual(case.quick_seconds, case.seconds, case.name)

  def test_the_command_line_decides_the_order(self):
    self.assertEqual([case.name for case in cases.chosen(["training", "cut"])], ["training", "cut"])
    self.assertTrue(cases.chosen(["cut+daemon"])[0].daemons)
    with self.assertRaisesRegex(ValueError, "no case cats; --list"):
      cases.chosen(["cut", "cats"])


class EvidenceTest(unittest.TestCase):

  def test_nccls_log_proves_which_network_carries_the_channels(self):
    self.assertEqual(case_loads.evidence(LOG), {"nccl": "2.28.9", "network": "R2CC", "channels": {"R2CC": 2}})

  def test_silence_proves_nothing(self):
    self.assertEqual(case_loads.evidence("hello"), {"nccl": None, "network": None, "channels": {}})
