"""//:drill: a cluster of 4 nodes on this machine runs an all_reduce while its rails are taken away, and every byte is checked."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Iterator

from rich.console import Console

from deploy.drill import guest_drill, story
from deploy.drill.arguments import parse_arguments
from deploy.drill.record import Record, judge, summary
from deploy.drill.release import RELEASE, REVISION
from deploy.drill.report import LiveReport, print_end
from deploy.drill.runner import Patience, Runner
from deploy.drill.story import Action, Step
from testing.guest.verbs_lab import VerbsLab
from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, JobOptions, keep_logs
from testing.lab.lab import Lab, LabError, monotonic_ns
from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.lab.loopback import LoopbackLab
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes

EXIT_FAILED = 1
NODES, RAILS = 4, 4
LOG_WIDTH = 120
FOLDER_PREFIX = "r2cc-drill-"


def version() -> str:
  """The drill's own, and what the programs say that it starts: these have the protocols."""
  binaries = built_binaries()
  lines = [f"r2cc-drill {RELEASE} (revision {REVISION or 'unknown: not from a package'})"]
  for program in (binaries.daemon, binaries.ctl, binaries.perf):
    lines.append(subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
  return "\n".join(lines)


def user_path(path: pathlib.Path | None) -> pathlib.Path | None:
  """`bazel run` changes the folder; the person meant their own."""
  return None if path is None else pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / path.expanduser()


def choose_lab(options: argparse.Namespace, console: Console) -> NamespaceLab | LoopbackLab:
  reason = "--no-root" if options.no_root else namespaces.missing_feature()
  if reason is None:
    return NamespaceLab(NODES, RAILS, options.rate)
  if options.root_required or options.no_daemon:
    raise LabError(f"network namespaces are needed and cannot be had: {reason}; run this as root")
  console.print(f"loopback addresses instead of network namespaces ({reason}): no shaping, and faults are drills of r2ccd",
                highlight=False, soft_wrap=True)
  return LoopbackLab(NODES, RAILS)


def sweep(console: Console) -> None:
  """Drills that were killed could not clean up."""
  for folder in pathlib.Path("/tmp").glob(f"{FOLDER_PREFIX}*-*"):
    owner = folder.name.removeprefix(FOLDER_PREFIX).split("-")[0]
    if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
      shutil.rmtree(folder, ignore_errors=True)
  swept = namespaces.sweep() if os.geteuid() == 0 else []
  if swept:
    console.print(f"removed {len(swept)} namespaces of drills that were killed", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def work_folder(keep: pathlib.Path | None) -> Iterator[pathlib.Path]:
  """In /tmp whatever TMPDIR says: the path of a Unix socket has room for 107 bytes."""
  folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir="/tmp"))
  try:
    yield folder
  finally:
    if keep is not None:
      keep_logs(folder, keep)
    shutil.rmtree(folder, ignore_errors=True)


@dataclasses.dataclass(frozen=True)
class Stage:
  """What a story is played on."""
  lab: Lab
  title: str
  steps: list[Step]
  job: JobOptions
  patience: Patience = Patience()


def choose_stage(options: argparse.Namespace, console: Console) -> Stage:
  pace = story.QUICK if options.quick else story.FULL
  if options.rig == "verbs":
    return Stage(VerbsLab(guest_drill.RAILS), f"{VerbsLab.nodes} nodes, {guest_drill.RAILS} RDMA rails each, no daemon",
                 story.verbs_story_steps(pace), guest_drill.JOB, guest_drill.PATIENCE)
  sweep(console)
  lab = choose_lab(options, console)
  daemons = not options.no_daemon
  shape = f"rails of {options.rate}" if lab.rate_gbps else "rails on loopback"
  return Stage(lab, f"{NODES} nodes, {RAILS} {shape} each, {'one r2ccd per node' if daemons else 'no daemon'}",
               story.story_steps(pace, daemons, lab.mode == "loopback"),
               JobOptions(environment={"R2CC_LINK_MONITOR": str(options.link_monitor)}))


def telling(job: JobOptions) -> JobOptions:
  """Where no daemon hears of failovers, the plugin's log tells of them."""
  level = "debug" if os.environ.get("R2CC_LOG") == "debug" else "info"
  return dataclasses.replace(job, environment=job.environment | {"R2CC_LOG": level}, flags=(*job.flags, "--debug"))


def play(options: argparse.Namespace, console: Console) -> dict[str, Any]:
  """Plays the story here, and shows it. The JSON object of --json."""
  binaries = built_binaries(user_path(options.plugin))
  binaries.check()
  stage = choose_stage(options, console)
  lab, daemons = stage.lab, not options.no_daemon
  jobs_expected = sum(step.action is Action.STOP_JOB for step in stage.steps)
  record = Record(lab.mode, lab.nodes, lab.rate_gbps, begin_ns=monotonic_ns())
  live = LiveReport(console, record)
  with work_folder(user_path(options.keep_logs)) as folder, lab, Processes(folder) as processes:
    try:
      live.headline(f"R2CC drill: {stage.title}")
      if lab.mode == "verbs":
        live.detail(guest_drill.EMULATED)
      cluster = Cluster(lab, binaries, folder, processes, daemons)
      if daemons:
        cluster.start_daemons()
        live.detail("every r2ccd is up and has met its peers")
      Runner(cluster, record, live, stage.job if daemons else telling(stage.job), stage.patience).run(stage.steps)
    except LabError as error:
      record.problems.append(str(error))
    finally:
      live.stop()
      record.end_ns = monotonic_ns()
  reasons = judge(record, jobs_expected)
  print_end(console, record, reasons)
  return summary(record, reasons, jobs_expected)


def drill(options: argparse.Namespace, console: Console) -> int:
  out = guest_drill.out_folder(os.environ)
  if options.rig == "verbs" and out is None:
    result = guest_drill.run(options, user_path(options.plugin), user_path(options.keep_logs), console)
  else:
    result = play(options, console)
    if out is not None:
      guest_drill.leave(out, result)
  if options.json:
    print(json.dumps(result), flush=True)
  return 0 if result["pass"] else EXIT_FAILED


def main() -> int:
  options = parse_arguments(sys.argv[1:], version)
  console = Console(stderr=options.json)
  if not console.is_terminal and guest_drill.out_folder(os.environ) is None:  # the guest's has the width of the one outside
    console.width = LOG_WIDTH
  try:
    with signals_unwind():
      return drill(options, console)
  except LabError as error:
    print(f"drill: {error}", file=sys.stderr)
    return EXIT_FAILED
  except EndedBySignal as ended:
    print(f"drill: ended by {ended}; everything it started is gone", file=sys.stderr)
    return ended.exit_code


if __name__ == "__main__":
  sys.exit(main())
