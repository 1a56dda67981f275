"""//:drill: a cluster of 4 nodes on this machine runs an all_reduce while its rails are taken away, and every byte is checked."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Iterator

from rich.console import Console

from deploy.drill import story
from deploy.drill.arguments import parse_arguments
from deploy.drill.record import Record, judge, summary
from deploy.drill.release import RELEASE, REVISION
from deploy.drill.report import LiveReport, print_end
from deploy.drill.rig import namespaces
from deploy.drill.rig.binaries import built_binaries
from deploy.drill.rig.cluster import Cluster, JobOptions, keep_logs
from deploy.drill.rig.lab import LabError, monotonic_ns
from deploy.drill.rig.lifetime import EndedBySignal, signals_unwind
from deploy.drill.rig.loopback import LoopbackLab
from deploy.drill.rig.namespaces import NamespaceLab
from deploy.drill.rig.processes import Processes
from deploy.drill.runner import Runner
from deploy.drill.story import Action

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


def drill(options: argparse.Namespace, console: Console) -> int:
  binaries = built_binaries(user_path(options.plugin))
  binaries.check()
  sweep(console)
  lab = choose_lab(options, console)
  daemons = not options.no_daemon
  steps = story.tell(story.QUICK if options.quick else story.FULL, daemons, lab.mode == "loopback")
  jobs_expected = sum(step.action is Action.STOP_JOB for step in steps)
  record = Record(lab.mode, NODES, lab.rate_gbps, begin_ns=monotonic_ns())
  live = LiveReport(console, record)
  with work_folder(user_path(options.keep_logs)) as folder, lab, Processes(folder) as processes:
    try:
      shape = f"rails of {options.rate}" if lab.rate_gbps else "rails on loopback"
      live.headline(f"R2CC drill: {NODES} nodes, {RAILS} {shape} each, {'one r2ccd per node' if daemons else 'no daemon'}")
      cluster = Cluster(lab, binaries, folder, processes, daemons)
      if daemons:
        cluster.start_daemons()
        live.detail("every r2ccd is up and has met its peers")
      Runner(cluster, record, live, JobOptions(environment={"R2CC_LINK_MONITOR": str(options.link_monitor)})).run(steps)
    except LabError as error:
      record.problems.append(str(error))
    finally:
      live.stop()
      record.end_ns = monotonic_ns()
  reasons = judge(record, jobs_expected)
  print_end(console, record, reasons)
  if options.json:
    print(json.dumps(summary(record, reasons, jobs_expected)), flush=True)
  return EXIT_FAILED if reasons else 0


def main() -> int:
  options = parse_arguments(sys.argv[1:], version)
  console = Console(stderr=options.json)
  if not console.is_terminal:
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
