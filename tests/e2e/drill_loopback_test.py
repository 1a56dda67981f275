import os
import pathlib
import shutil
import tempfile
import unittest

from testing.lab.binaries import built_file
from tests.e2e.drill_process import copy_tree, run_drill

# An empty bounding set leaves even root without a single privilege.
UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
ORDINARY_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


class DrillOnLoopback(unittest.TestCase):

  def expect_pass(self, result) -> None:
    self.assertEqual(result.exit_code, 0, result.story)
    summary = result.summary
    self.assertTrue(summary["pass"])
    self.assertEqual((summary["wrong_elements"], summary["late_writes"]), (0, 0))
    self.assertEqual(summary["mode"], "loopback")
    self.assertIsNone(summary["rate_gbps"])
    self.assertGreaterEqual(len(summary["faults"]), 2)
    for fault in summary["faults"]:
      self.assertEqual(fault["kind"], "fail-nic")
      self.assertGreater(fault["failovers"], 0)

  def test_passes_without_any_privilege(self):
    drop = os.geteuid() == 0 and shutil.which("setpriv") is not None
    result = run_drill("--quick", *([] if drop else ["--no-root"]), through=UNPRIVILEGED if drop else [])
    self.expect_pass(result)

  def test_passes_for_an_ordinary_user(self):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
      self.skipTest("needs root and setpriv: takes another uid")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
      self.expect_pass(run_drill("--quick", through=ORDINARY_USER, tree=copy_tree(pathlib.Path(folder))))

  def test_a_plain_plugin_fails(self):
    result = run_drill("--quick", "--no-root", "--plugin", str(built_file("tests/control/libnccl-net-plain.so")))
    self.assertEqual(result.exit_code, 1, result.story)
    self.assertFalse(result.summary["pass"])
    self.assertIn("did not attach to r2ccd", result.story)
