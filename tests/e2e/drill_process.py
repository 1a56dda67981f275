"""Runs the built drill as its users do: as a program, judged by exit code and last line."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import unittest
from typing import Any, Sequence

from testing.lab import namespaces
from testing.lab.binaries import built_file
from testing.lab.processes import clean_environment

# Several times what a drill takes, so that only a hang meets it.
_TIMEOUT_S = 280


@dataclasses.dataclass(frozen=True)
class DrillResult:
  exit_code: int
  summary: dict[str, Any]  # the JSON object
  story: str  # what a person reads


def copy_tree(folder: pathlib.Path) -> pathlib.Path:
  """What was built, where every user can read it: Bazel's own folders may be root's alone."""
  folder.chmod(0o755)
  return pathlib.Path(shutil.copytree(built_file("deploy/drill/drill").parents[2], folder / "drill.runfiles/r2cc"))


def run_drill(*flags: str, through: Sequence[str] = (), tree: pathlib.Path | None = None) -> DrillResult:
  """`through`: a program, with its arguments, that starts the drill. `tree`: a copy_tree() in place of what was built, for a user who may
  neither read that nor write where the test keeps its outputs."""
  outputs = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR") if tree is None else None
  keep = ["--keep-logs", os.path.join(outputs, "_".join(["drill", *(os.path.basename(flag) for flag in flags)]))] if outputs else []
  drill = built_file("deploy/drill/drill") if tree is None else tree / "deploy/drill/drill"
  done = subprocess.run([*through, str(drill), "--json", *keep, *flags], capture_output=True, text=True,
                        timeout=_TIMEOUT_S, check=False, env=clean_environment({}))
  lines = done.stdout.strip().splitlines()
  try:
    summary = json.loads(lines[-1])
  except (IndexError, ValueError):
    summary = {}
  return DrillResult(done.returncode, summary, done.stderr)


class DrillCase(unittest.TestCase):
  """Drills in network namespaces."""

  @classmethod
  def setUpClass(cls) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")

  def expect_right(self, result: DrillResult, rate_gbps: float = 2.0) -> None:
    """Facts about correctness; the figures' sizes are the bench's business (//tests/bench:drill_stalls)."""
    self.assertEqual(result.exit_code, 0, result.story)
    summary = result.summary
    self.assertTrue(summary["pass"])
    self.assertEqual((summary["wrong_elements"], summary["late_writes"]), (0, 0))
    self.assertEqual(summary["mode"], "namespaces")
    self.assertEqual(summary["rate_gbps"], rate_gbps)
    for figure in ("busbw_healthy_gbps", "busbw_degraded_gbps", "busbw_restored_gbps"):
      self.assertGreater(summary[figure], 0, figure)
    for fault in summary["faults"]:
      self.assertIsNotNone(fault["stall_ms"])
    for figure in ("balance_ms", "degraded_all_reduce_ms"):
      self.assertGreaterEqual(summary["half_lost"][figure], summary["half_lost"]["bound_ms"] * 0.9, "tbf lets a burst through")
