"""A rail that stays sick while a job runs: a share of its connections carries little or nothing, whichever ports they have.

So behaves a group of links (LAG, ECMP) with a bad member: connections that are opened again may meet it again. Prints all stalls together,
and what the job carries beside what its sound rails carry alone. Rails are shaped veth pairs in namespaces.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

from testing.lab import namespaces, stalls
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions, keep_logs
from testing.lab.lab import LabError, RailId, monotonic_ns
from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from testing.lab.stalls import Window
from tests.bench import fault_figures
from tests.bench.options import names_file, own_path

NODES, RAILS = 2, 4
START_S, STOP_S, LOOK_S = 60.0, 60.0, 0.5
# A flow that waits for longer than this is stalled; a healthy one of this job waits for a few milliseconds.
STALL_LEAST_NS = 100_000_000


def parse_arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="sick_rail", description=__doc__, allow_abbrev=False)
  parser.add_argument("--minutes", type=float, default=10, help="of the sick rail (default: %(default)s)")
  parser.add_argument("--connections", type=int, default=4, help="one of so many connections meets the fault (default: %(default)s)")
  parser.add_argument("--lost", type=int, default=90,
                      help="percent of a sick connection's packets (default: %(default)s; 100: it is swallowed)")
  parser.add_argument("--size", default="8M", help="of the all_reduce (default: %(default)s)")
  parser.add_argument("--rate", default="100mbit", help="of a rail; two busy cores carry it (default: %(default)s)")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object")
  parser.add_argument("--plugin", type=names_file, metavar="PATH", help="instead of the one built here")
  parser.add_argument("--keep-logs", type=own_path, metavar="DIR", help="leave logs and traces there")
  options = parser.parse_args()
  if options.minutes <= 0 or options.connections < 1 or not 1 <= options.lost <= 100:
    parser.error("--minutes must be above 0, --connections at least 1 and --lost 1 to 100")
  return options


class Phase:
  """What a job did in a stretch of time. Its rows are dropped as it goes: ten minutes of them."""

  def __init__(self) -> None:
    self.bytes, self.seconds, self.iterations = 0, 0.0, 0
    self.stalls_ns: list[int] = []

  def watch(self, job: Job, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    begin_ns = since_ns = monotonic_ns()
    job.follower.poll()
    job.follower.rows.clear()
    while (left_s := end_s - time.monotonic()) > 0:
      time.sleep(min(LOOK_S, left_s))
      rows = job.follower.poll()
      now_ns = monotonic_ns()
      if job.dead_rank() is not None:
        raise LabError(f"the job ended: {' / '.join(job.failures())}")
      self.stalls_ns += [wait.end_ns - wait.begin_ns for wait in stalls.waits(rows, Window(since_ns, now_ns), STALL_LEAST_NS)]
      ended = [row for row in rows if row.kind == "iteration" and row.rank == 0]
      self.iterations += len(ended)
      self.bytes += sum(row.size_bytes for row in ended)
      # A wait that goes on is seen when it ends, and then from its begin.
      since_ns = begin_ns
      job.follower.rows.clear()
    self.seconds += (monotonic_ns() - begin_ns) / 1e9

  def rate(self) -> float:
    return self.bytes / self.seconds if self.seconds else 0.0


def run(options: argparse.Namespace, lab: NamespaceLab, cluster: Cluster) -> dict:
  job = cluster.start_job("job", JobOptions(size=options.size, seconds_max=options.minutes * 60 + 3600,
                                            environment={"R2CC_LOG": "info"}, flags=("--debug", "--progress", "0")))
  started = lambda: any(row.kind == "iteration" for row in job.follower.poll()) or job.dead_rank() is not None
  if not wait_until(started, START_S, LOOK_S) or job.dead_rank() is not None:
    raise LabError(f"the job did not start: {' / '.join(rank.last_lines() for rank in job.ranks)}")
  healthy, without, sick = Phase(), Phase(), Phase()
  healthy.watch(job, 10)
  lab.cut(RailId(0, 0))
  time.sleep(1)
  without.watch(job, 10)
  lab.heal(RailId(0, 0))
  time.sleep(5)
  lost = "" if options.lost == 100 else f" numgen random mod 100 < {options.lost}"
  lab.lose(RailId(0, 0), f"jhash tcp sport . tcp dport mod {options.connections} == 0{lost}")
  for minute in range(int(options.minutes * 60 + 29) // 30):
    sick.watch(job, min(30, options.minutes * 60 - 30 * minute))
    print(f"{30 * (minute + 1):5} s: {len(sick.stalls_ns)} stalls, {sum(sick.stalls_ns) / 1e9:.2f} s in all", file=sys.stderr, flush=True)
  job.ask_to_stop()
  if not job.wait(STOP_S):
    raise LabError(f"the job did not end within {STOP_S:g} s of being asked to")
  report = job.report()
  given_up = sum(fault_figures.links_given_up(rank.errors()) for rank in job.ranks)
  return {
      "minutes": options.minutes, "stalls": len(sick.stalls_ns), "stall_s": sum(sick.stalls_ns) / 1e9,
      "stall_ms_worst": max(sick.stalls_ns, default=0) / 1e6, "links_given_up": given_up,
      "of_sound_rails": sick.rate() / (without.rate() or 1), "of_healthy": sick.rate() / (healthy.rate() or 1),
      "wrong": report["wrong_elements"], "late_writes": report["late_writes"], "failed": job.failures(),
  }


def main() -> int:
  options = parse_arguments()
  binaries = built_binaries(options.plugin)
  folder = pathlib.Path(tempfile.mkdtemp(prefix="r2cc-bench-", dir="/tmp"))
  try:
    binaries.check()
    if (reason := namespaces.missing_feature()) is not None:
      raise LabError(f"needs root: {reason}")
    with signals_unwind(), NamespaceLab(NODES, RAILS, rate=options.rate) as lab, Processes(folder) as processes:
      result = run(options, lab, Cluster(lab, binaries, folder, processes, daemons=False))
  except LabError as error:
    print(f"sick_rail: {error}", file=sys.stderr)
    return 1
  except EndedBySignal as ended:
    print(f"sick_rail: ended by {ended}; everything it started is gone", file=sys.stderr)
    return ended.exit_code
  finally:
    if options.keep_logs is not None:
      keep_logs(folder, options.keep_logs)
    shutil.rmtree(folder, ignore_errors=True)
  text = (f"{result['stalls']} stalls, {result['stall_s']:.2f} s in all, worst {result['stall_ms_worst']:.0f} ms; "
          f"{result['links_given_up']} links given up; {result['of_sound_rails']:.3f} of what the sound rails carry, "
          f"{result['of_healthy']:.3f} of all; {result['wrong']} wrong, {result['late_writes']} late writes")
  print(json.dumps(result) if options.json else text)
  return 1 if result["failed"] or result["wrong"] or result["late_writes"] else 0


if __name__ == "__main__":
  sys.exit(main())
