import subprocess
import unittest

from testing.lab.binaries import built_file
from testing.lab.processes import clean_environment


class BadFlags(unittest.TestCase):

  def refuse(self, exit_code: int, *flags: str) -> str:
    done = subprocess.run([str(built_file("deploy/drill/drill")), *flags], capture_output=True, text=True, timeout=120, check=False,
                          env=clean_environment({}))
    self.assertEqual(done.returncode, exit_code, done.stderr)
    self.assertEqual(done.stdout, "")
    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
    return done.stderr

  def test_unknown_flag(self):
    self.assertIn("--bogus", self.refuse(2, "--bogus"))

  def test_bad_rate(self):
    self.assertIn("500mbit", self.refuse(2, "--rate", "fast"))

  def test_contradictions(self):
    self.assertIn("--no-root", self.refuse(2, "--no-root", "--no-daemon"))
    self.assertIn("--no-root", self.refuse(2, "--no-root", "--root-required"))
    self.assertIn("--link-monitor", self.refuse(2, "--link-monitor", "0", "--no-daemon"))
    self.assertIn("--link-monitor", self.refuse(2, "--link-monitor", "2"))

  def test_missing_plugin(self):
    self.assertIn("/no/such/plugin.so", self.refuse(1, "--plugin", "/no/such/plugin.so"))
