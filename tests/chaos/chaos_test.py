"""Three minutes of chaos on whole daemons and jobs. A plugin that loses its rails on its own is caught."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
from typing import Any

from testing.lab import namespaces
from tests.chaos import main

MINUTES, SEED = 3, 1


def mounts() -> set[str]:
  """Those of chaos. A run that was killed may have left some."""
  return {line for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if line.startswith("r2cc-chaos ")}


class Chaos(unittest.TestCase):

  def setUp(self) -> None:
    if (reason := namespaces.missing_feature()) is not None:
      self.skipTest(f"needs root: {reason}")
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-chaos-test-")))

  def chaos(self, *flags: str) -> tuple[int, dict[str, Any]]:
    """Its exit code and its report."""
    argv = ["chaos", "--seed", str(SEED), "--out", str(self.folder / "out"), *flags]
    if outputs := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
      argv += ["--keep-logs", f"{outputs}/{self.id().rpartition('.')[2]}"]
    before = mounts()
    with unittest.mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(io.StringIO()):
      code = main.main()
    self.assertEqual(mounts() - before, set())
    return code, json.loads((self.folder / "out" / "chaos.json").read_text(encoding="utf-8"))

  def test_no_job_fails_and_nothing_is_left(self):
    code, found = self.chaos("--minutes", str(MINUTES))
    self.assertEqual((code, found["problems"]), (0, []))
    self.assertGreater(found["faults"], 30)
    self.assertGreater(found["jobs"], 4)

  def test_a_job_that_fails_fails_the_run(self):
    lost = "R2CC_FAIL_RAILS=rail0@3000,rail1@3000,rail2@3000"
    code, found = self.chaos("--minutes", "0.5", "--kinds", "reload", "--jobs", "ring", "--env", lost, "--env", "R2CC_DEADLINE_MS=3000")
    self.assertEqual((code, found["passed"]), (1, False))
    # Others may end before their rails are lost.
    longest = max(found["job_list"], key=lambda job: job["seconds"])
    self.assertIn("gave up on n", longest["failures"][0])
    self.assertEqual(found["jobs_failed"], sum(bool(job["failures"]) for job in found["job_list"]))
    self.assertIn("gave up on n", found["problems"][0])
