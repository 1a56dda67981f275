"""promtool takes the alert rules, and each of their tests passes."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

_HERE = pathlib.Path(__file__).parent


def promtool(*arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
  return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, cwd=cwd, timeout=300)


class PromtoolTest(unittest.TestCase):

  def setUp(self):
    if shutil.which("promtool") is None:
      self.skipTest("needs prometheus: promtool")

  def test_the_rules_are_sound(self):
    done = promtool("check", "rules", "r2cc.rules.yml", cwd=_HERE)
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

  def test_each_alert_fires_where_it_should_and_nowhere_else(self):
    done = promtool("test", "rules", "r2cc.rules.test.yml", "r2cc.rules.days.test.yml", cwd=_HERE)
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

  def test_a_case_that_is_wrong_is_found(self):
    with tempfile.TemporaryDirectory() as folder:
      for name in ("r2cc.rules.yml", "r2cc.rules.test.yml"):
        text = (_HERE / name).read_text(encoding="utf-8")
        wrong = text.replace("increase(r2cc_job_errors_total[10m]) > 0", "vector(0) > 1")
        (pathlib.Path(folder) / name).write_text(wrong, encoding="utf-8")
      self.assertNotEqual(promtool("test", "rules", "r2cc.rules.test.yml", cwd=pathlib.Path(folder)).returncode, 0)
