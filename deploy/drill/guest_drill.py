"""The drill on RDMA rails: the same program once more, in an emulated machine that has such rails (guest/)."""

import argparse
import json
import os
import pathlib
import sys
from typing import Any, Callable, Mapping, Sequence

from rich.console import Console

from deploy.drill.runner import Patience
from testing.guest import guest, kernel
from testing.lab.cluster import JobOptions, keep_logs
from testing.lab.lab import LabError

RAILS = 2
# One processor has both ranks, both kernels' work and the checks: an all_reduce of this takes a tenth of a second.
JOB = JobOptions(size="256K", environment={"R2CC_TRANSPORT": "verbs"})
# An emulated machine is slow, on a busy one several times more. 128 KiB: half of what an all_reduce sends, and far above a greeting. A
# second has some hundred rows; a drill that reads thousands at each look takes the processor from the job.
PATIENCE = Patience(start_s=120, stop_s=120, hang_s=30, aim_s=5, carried_bytes_min=128 << 10, recent_rows=300)
# Several times the story's.
_LIMIT_S = 900
# start.sh exports it.
_OUT_VARIABLE = "R2CC_GUEST_OUT"
_SUMMARY, _LOGS = "summary.json", "logs"
EMULATED = ("emulated: one slow processor and one kernel for both nodes (QEMU without KVM), soft-RoCE devices, virtual cables. "
            "Right or wrong is as on any machine, times are not those of a NIC")


def out_folder(environment: Mapping[str, str]) -> pathlib.Path | None:
  """Where a drill that runs in the guest leaves what is wanted outside; None: this is not the guest."""
  return pathlib.Path(environment[_OUT_VARIABLE]) if environment.get(_OUT_VARIABLE) else None


def leave(out: pathlib.Path, summary: Mapping[str, Any]) -> None:
  """In the guest: the JSON object, for run()."""
  (out / _SUMMARY).write_text(json.dumps(summary), encoding="utf-8")


def command(options: argparse.Namespace, plugin: pathlib.Path | None) -> list[str]:
  """What the guest runs."""
  words = [sys.executable, "-m", "deploy.drill.main", "--rig", "verbs"]
  if options.quick:
    words.append("--quick")
  if plugin is not None:
    words += ["--plugin", str(plugin)]
  if options.keep_logs is not None:
    words += ["--keep-logs", f"/run/guest/out/{_LOGS}"]
  return words


def judged(summary: dict[str, Any], complaints: Sequence[str]) -> dict[str, Any]:
  """The guest's own verdict, unless its kernel was damaged meanwhile."""
  if not complaints:
    return summary
  reason = f"the guest's kernel complained: {complaints[0]}"
  return summary | {"pass": False, "reason": summary["reason"] or reason}


def run(options: argparse.Namespace, plugin: pathlib.Path | None, keep: pathlib.Path | None, console: Console,
        make: Callable[..., guest.Guest] = guest.Guest) -> dict[str, Any]:
  """Boots a guest, shows what its drill says, and returns that one's JSON object. LabError: there was none."""
  reason = guest.missing_feature()
  if reason is not None:
    raise LabError(f"no emulated machine can run here: {reason}")

  def show(line: str) -> None:
    own = line.removeprefix("| ")
    console.print(own if own != line else f"guest: {line}", markup=False, highlight=False, soft_wrap=True,
                  style=None if own != line else "dim")

  environment = {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": str(console.width)}
  try:
    with make(RAILS, "bridge", show=show) as machine:
      result = machine.run(command(options, plugin), environment, limit_s=_LIMIT_S)
      if keep is not None and (result.folder / _LOGS).is_dir():
        keep_logs(result.folder / _LOGS, keep)
      summary = result.folder / _SUMMARY
      if not summary.is_file():
        last = (result.output.strip().splitlines() or ["nothing"])[-1]
        raise LabError(f"the drill in the guest ended with {result.status} and said: {last}")
      verdict = judged(json.loads(summary.read_text(encoding="utf-8")), result.kernel_complaints())
  except (guest.GuestError, kernel.KernelError) as error:
    raise LabError(str(error)) from error
  if result.kernel_complaints():
    console.print(f"FAIL  {verdict['reason']}", markup=False, highlight=False, soft_wrap=True)
  return verdict
