"""Runs the built drill as its users do: as a program, judged by exit code and last line."""

import dataclasses
import json
import os
import subprocess
from typing import Any, Sequence

from deploy.drill.rig.binaries import built_file
from deploy.drill.rig.processes import clean_environment

# Several times what a drill takes, so that only a hang meets it.
_TIMEOUT_S = 280


@dataclasses.dataclass(frozen=True)
class DrillResult:
  exit_code: int
  said: dict[str, Any]  # the JSON object
  story: str  # what a person reads


def run_drill(*flags: str, through: Sequence[str] = ()) -> DrillResult:
  """`through`: a program, with its arguments, that starts the drill."""
  outputs = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
  keep = ["--keep-logs", os.path.join(outputs, "_".join(["drill", *(os.path.basename(flag) for flag in flags)]))] if outputs else []
  done = subprocess.run([*through, str(built_file("deploy/drill/drill")), "--json", *keep, *flags], capture_output=True, text=True,
                        timeout=_TIMEOUT_S, check=False, env=clean_environment({}))
  lines = done.stdout.strip().splitlines()
  try:
    said = json.loads(lines[-1])
  except (IndexError, ValueError):
    said = {}
  return DrillResult(done.returncode, said, done.stderr)
