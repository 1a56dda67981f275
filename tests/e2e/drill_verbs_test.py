"""The drill on RDMA rails: a guest of QEMU with soft-RoCE devices. A minute on a quiet machine."""

import unittest

from testing.guest import guest
from tests.e2e.drill_process import run_drill


class DrillOnRdmaRails(unittest.TestCase):

  def test_passes(self):
    reason = guest.missing_feature()
    if reason is not None:
      self.skipTest(f"needs one_guest: {reason}")
    result = run_drill("--rig", "verbs", "--quick")
    print(result.story)
    self.assertEqual(result.exit_code, 0, result.story)
    summary = result.summary
    self.assertTrue(summary["pass"])
    self.assertEqual((summary["mode"], summary["wrong_elements"], summary["late_writes"]), ("verbs", 0, 0))
    self.assertEqual([(fault["kind"], fault["rail"]) for fault in summary["faults"]],
                     [("link-down", "n0/rail1"), ("link-down", "n1/rail0"), ("silence", "n0/rail1")])
    for fault in summary["faults"]:
      self.assertGreater(fault["failovers"], 0, fault)
      self.assertIsNotNone(fault["stall_ms"], fault)
    self.assertIn("emulated: one slow processor", result.story)
