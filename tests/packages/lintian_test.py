"""The packages as Debian's own judge sees them."""

import pathlib
import subprocess
import unittest

from bazel import unittest_main


class LintianTest(unittest.TestCase):

  def test_no_error(self):
    debs = [str(pathlib.Path(path).resolve()) for path in unittest_main.test_args()]
    self.assertEqual(len(debs), 6)
    judged = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", *debs], check=False,
                            capture_output=True, text=True)
    print(judged.stdout)
    self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
    self.assertNotIn("E: ", judged.stdout)
