"""The drill with other flags, and with plugins that must fail it."""

from testing.lab.binaries import built_file
from tests.e2e.drill_process import DrillCase, run_drill


class DrillInNamespaces(DrillCase):

  def test_passes_without_the_plugins_own_link_monitor(self):
    self.expect_right(run_drill("--root-required", "--quick", "--link-monitor", "0"))

  def test_passes_without_a_daemon(self):
    result = run_drill("--root-required", "--quick", "--no-daemon")
    self.expect_right(result)
    self.assertEqual([fault["rail"] for fault in result.summary["faults"]], ["n0/rail1", "n1/rail1"])

  def test_a_plain_plugin_fails_with_a_clear_message(self):
    result = run_drill("--root-required", "--quick", "--no-daemon", "--plugin", str(built_file("tests/control/libnccl-net-plain.so")))
    self.assertEqual(result.exit_code, 1, result.story)
    self.assertFalse(result.summary["pass"])
    self.assertRegex(result.summary["reason"], "(hangs|died) since n0/rail1 was lost")

  def test_a_plain_plugin_fails_also_next_to_daemons(self):
    result = run_drill("--root-required", "--quick", "--plugin", str(built_file("tests/control/libnccl-net-plain.so")))
    self.assertEqual(result.exit_code, 1, result.story)
    self.assertRegex(result.summary["reason"], "(hangs|died) since n0/rail1 was lost")
    self.assertIn("did not attach to r2ccd", result.story)
