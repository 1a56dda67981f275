"""A healthy fabric under full load, with CPU hogs on every core and ranks that are stopped for 1 to 40 s: nothing may be given up and
nothing may fail. Prints migrations and errors. Rails are unshaped veth pairs in namespaces, without root loopback addresses."""

import argparse
import heapq
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions, keep_logs
from testing.lab.lab import LabError
from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.lab.loopback import LoopbackLab
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.bench import alarm_plan, fault_figures
from tests.bench.alarm_plan import Alarms
from tests.bench.options import named_values, names_file, own_path

RAILS = 4
START_S, STOP_S = 60.0, 60.0
# With the cores shared with hogs, nothing completed for so long, all ranks running, is a hang.
HANG_S = 30.0
LOOK_S = 0.2
PERF_TIMEOUT_S = 300
HOG = "while True:\n  pass\n"


def parse_arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="no_false_alarm", description=__doc__, allow_abbrev=False)
  parser.add_argument("--minutes", type=float, default=30, help="default: %(default)s")
  parser.add_argument("--ranks", type=int, default=4, help="one a node (default: %(default)s)")
  parser.add_argument("--hogs", type=int, default=os.cpu_count(), help="processes that only burn CPU (default: one a core, %(default)s)")
  parser.add_argument("--deadline-ms", type=int, default=20_000, help="R2CC_DEADLINE_MS (default: %(default)s)")
  parser.add_argument("--size", default="16M", help="of the all_reduce (default: %(default)s)")
  parser.add_argument("--seed", type=int, default=1, help="of the stops (default: %(default)s)")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object")
  parser.add_argument("--plugin", type=names_file, metavar="PATH", help="instead of the one built here")
  parser.add_argument("--env", type=named_values, action="append", default=[], metavar="NAME=VALUE", help="in the environment of the job")
  parser.add_argument("--keep-logs", type=own_path, metavar="DIR", help="leave logs and traces there")
  options = parser.parse_args()
  if options.ranks < 2 or options.minutes <= 0 or options.hogs < 0:
    parser.error("--ranks must be at least 2, --minutes above 0 and --hogs not negative")
  return options


class Watch:
  """Sees whether a job lives and moves."""

  def __init__(self, job: Job):
    self._job = job
    self.iterations = 0
    self._moved_s = time.monotonic()

  def look(self, stopped: bool) -> str | None:
    """Why the job is lost, in one line; None: it is not. While a rank is stopped nobody needs to move."""
    fresh = self._job.follower.poll()
    self._job.follower.rows.clear()  # half an hour of them
    self.iterations += sum(1 for row in fresh if row.kind == "iteration" and row.rank == 0)
    if fresh or stopped:
      self._moved_s = time.monotonic()
    if self._job.dead_rank() is not None:
      wait_until(lambda: all(not rank.is_alive() for rank in self._job.ranks), 2.0)
      return " / ".join(self._job.failures()) or "the job ended by itself"
    if time.monotonic() - self._moved_s > HANG_S:
      return f"the job hangs: nothing completed for {HANG_S:g} s while all ranks ran"
    return None


def follow(job: Job, watch: Watch, alarms: Alarms, stops: list[alarm_plan.Stop], seconds: float) -> None:
  """Does the stops in their time; returns early when the job is lost."""
  begin_s = time.monotonic()
  pending = list(stops)
  stopped: list[tuple[float, int]] = []  # when to go on, rank
  while (now_s := time.monotonic() - begin_s) < seconds or stopped:
    while stopped and stopped[0][0] <= now_s:
      job.ranks[heapq.heappop(stopped)[1]].resume()
    while pending and pending[0].at_s <= now_s:
      stop = pending.pop(0)
      job.ranks[stop.rank].pause()
      heapq.heappush(stopped, (now_s + stop.seconds, stop.rank))
      alarms.stops.append(stop)
      print(f"{now_s:6.0f} s: rank {stop.rank} is stopped for {stop.seconds:.1f} s; {watch.iterations} iterations, "
            f"{migrations(job)} migrations", file=sys.stderr, flush=True)
    if (lost := watch.look(bool(stopped))) is not None:
      alarms.errors.append(lost)
      return
    time.sleep(LOOK_S)


def migrations(job: Job) -> int:
  return sum(fault_figures.links_given_up(rank.errors()) for rank in job.ranks)


def run(options: argparse.Namespace, cluster: Cluster, processes: Processes) -> Alarms:
  environment = {"R2CC_LOG": "info", "R2CC_DEADLINE_MS": str(options.deadline_ms)}
  environment |= {name: value for pair in options.env for name, value in pair.items()}
  seconds = options.minutes * 60
  alarms = Alarms(deadline_s=options.deadline_ms / 1e3, hogs=options.hogs)
  job = cluster.start_job("job", JobOptions(size=options.size, seconds_max=seconds + 3600, timeout_s=PERF_TIMEOUT_S,
                                            environment=environment, flags=("--debug", "--progress", "0")))
  watch = Watch(job)
  if not wait_until(lambda: watch.look(False) is not None or watch.iterations > 0, START_S, LOOK_S) or job.dead_rank() is not None:
    raise LabError(f"the job did not start: {' / '.join(rank.last_lines() for rank in job.ranks)}")
  for hog in range(options.hogs):
    processes.start(f"hog{hog}", [sys.executable, "-c", HOG])
  begin_s = time.monotonic()
  follow(job, watch, alarms, alarm_plan.plan(seconds, options.ranks, alarms.deadline_s, options.seed), seconds)
  alarms.seconds = time.monotonic() - begin_s
  alarms.migrations = migrations(job)
  alarms.given_up_lines = [line for rank in job.ranks for line in fault_figures.given_up_lines(rank.errors())]
  if not alarms.errors:
    job.ask_to_stop()
    if not job.wait(STOP_S):
      alarms.errors.append(f"the job did not end within {STOP_S:g} s of being asked to")
    alarms.errors += job.failures()
  job.kill()
  alarms.iterations = watch.iterations
  alarms.waiting_lines = sum(rank.errors().count(alarm_plan.BUSY_PEER) for rank in job.ranks)
  try:
    report = job.report()
    alarms.wrong, alarms.late_writes = report["wrong_elements"], report["late_writes"]
  except (LabError, KeyError) as error:
    alarms.errors.append(str(error))
  return alarms


def main() -> int:
  options = parse_arguments()
  binaries = built_binaries(options.plugin)
  folder = pathlib.Path(tempfile.mkdtemp(prefix="r2cc-bench-", dir="/tmp"))
  try:
    binaries.check()
    with signals_unwind():
      reason = namespaces.missing_feature()
      lab = LoopbackLab(options.ranks, RAILS) if reason else NamespaceLab(options.ranks, RAILS, rate=None)
      print(f"rails are {f'loopback addresses ({reason})' if reason else 'veth pairs'}", file=sys.stderr, flush=True)
      with lab, Processes(folder) as processes:
        alarms = run(options, Cluster(lab, binaries, folder, processes, daemons=False), processes)
  except LabError as error:
    print(f"no_false_alarm: {error}", file=sys.stderr)
    return 1
  except EndedBySignal as ended:
    print(f"no_false_alarm: ended by {ended}; everything it started is gone", file=sys.stderr)
    return ended.exit_code
  finally:
    if options.keep_logs is not None:
      keep_logs(folder, options.keep_logs)
    shutil.rmtree(folder, ignore_errors=True)
  for line in alarms.errors + alarms.given_up_lines:
    print(line, file=sys.stderr)
  print(json.dumps(alarms.json_object()) if options.json else alarms.text())
  return 0


if __name__ == "__main__":
  sys.exit(main())
