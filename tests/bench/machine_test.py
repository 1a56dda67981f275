import os
import time
import unittest

from tests.bench import machine

STAT = "cpu  100 20 30 400 50 1 2 7 0 0\ncpu0 50 10 15 200 25 1 1 3 0 0\n"


class Machine(unittest.TestCase):

  def test_parses_seconds(self):
    seconds = machine.parse_cpu_seconds(STAT, 100)
    self.assertAlmostEqual(seconds.busy, 1.53)
    self.assertAlmostEqual(seconds.stolen, 0.07)
    self.assertAlmostEqual(seconds.total, 6.1)
    with self.assertRaises(ValueError):
      machine.parse_cpu_seconds("intr 1 2 3\n", 100)

  def test_its_own_process_has_used_time_and_memory(self):
    before = machine.process_cpu_seconds(os.getpid())
    self.assertAlmostEqual(before, time.process_time(), delta=0.01)
    self.assertGreater(machine.process_cpu_seconds(os.getpid()), before)
    with self.assertRaises(OSError):
      machine.process_cpu_seconds(2**22 + 1)  # beyond the largest there is
    self.assertGreater(machine.peak_memory_mib(os.getpid()), 1)

  def test_the_busy_share_is_of_what_passed_in_between(self):
    before, after = machine.CpuSeconds(10, 0, 100), machine.CpuSeconds(12.5, 0, 110)
    self.assertEqual(machine.busy_share(before, after), 0.25)
    self.assertEqual(machine.busy_share(before, before), 0)

  def test_warns_of_load_before_and_meanwhile(self):
    self.assertIsNone(machine.warning({"busy_share_before": 0.05, "others_share": 0.02}))
    self.assertIn("50 % of the cores before", machine.warning({"busy_share_before": 0.5, "others_share": 0.0}))
    self.assertIn("30 % meanwhile", machine.warning({"busy_share_before": 0.0, "others_share": 0.3}))

  def test_a_real_machine_adds_up(self):
    others = machine.OthersShare()
    facts = machine.describe()
    self.assertTrue(0 <= facts["busy_share_before"] <= 1)
    self.assertTrue(0 <= others.share() <= 1)
    self.assertIn("cores", machine.headline(facts))
