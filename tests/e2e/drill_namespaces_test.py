import unittest

from deploy.drill.rig import namespaces
from deploy.drill.rig.binaries import built_file
from tests.e2e.drill_process import run_drill


class DrillInNamespaces(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")

  def expect_right(self, result, rate_gbps: float = 2.0) -> None:
    """Facts about correctness; the figures' sizes are the bench's business (//tests/bench:drill_stalls)."""
    self.assertEqual(result.exit_code, 0, result.story)
    said = result.said
    self.assertTrue(said["pass"])
    self.assertEqual((said["wrong_elements"], said["late_writes"]), (0, 0))
    self.assertEqual(said["mode"], "namespaces")
    self.assertEqual(said["rate_gbps"], rate_gbps)
    for figure in ("busbw_healthy_gbps", "busbw_degraded_gbps", "busbw_restored_gbps"):
      self.assertGreater(said[figure], 0, figure)
    for fault in said["faults"]:
      self.assertIsNotNone(fault["stall_ms"])
    for figure in ("balance_ms", "degraded_all_reduce_ms"):
      self.assertGreaterEqual(said["half_lost"][figure], said["half_lost"]["bound_ms"] * 0.9, "tbf lets a burst through")

  def test_passes(self):
    # Rails so slow that a busy machine fills them all the time: a fault finds something on its way. The second one is made while the first
    # lasts: n0 sets the pace with three rails, and the four of n1 are empty for a quarter of the time.
    result = run_drill("--root-required", "--rate", "200mbit")
    self.expect_right(result, rate_gbps=0.8)
    self.assertEqual([(fault["kind"], fault["rail"]) for fault in result.said["faults"]],
                     [("link-down", "n0/rail1"), ("link-down", "n1/rail1"), ("fail-nic", "n2/rail2")])
    for fault in result.said["faults"]:
      self.assertGreater(fault["failovers"], 0, fault)
    for fault in (result.said["faults"][0], result.said["faults"][2]):
      self.assertGreater(fault["replayed_bytes"], 0, fault)

  def test_passes_without_the_plugins_own_link_monitor(self):
    self.expect_right(run_drill("--root-required", "--quick", "--link-monitor", "0"))

  def test_passes_without_a_daemon(self):
    result = run_drill("--root-required", "--quick", "--no-daemon")
    self.expect_right(result)
    self.assertEqual([fault["rail"] for fault in result.said["faults"]], ["n0/rail1", "n1/rail1"])

  def test_a_plain_plugin_fails_with_a_clear_message(self):
    result = run_drill("--root-required", "--quick", "--no-daemon", "--plugin", str(built_file("tests/control/libnccl-net-plain.so")))
    self.assertEqual(result.exit_code, 1, result.story)
    self.assertFalse(result.said["pass"])
    self.assertRegex(result.said["reason"], "(hangs|died) since n0/rail1 was lost")

  def test_a_plain_plugin_fails_also_beside_daemons(self):
    result = run_drill("--root-required", "--quick", "--plugin", str(built_file("tests/control/libnccl-net-plain.so")))
    self.assertEqual(result.exit_code, 1, result.story)
    self.assertRegex(result.said["reason"], "(hangs|died) since n0/rail1 was lost")
    self.assertIn("did not attach to r2ccd", result.story)
