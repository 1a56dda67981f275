"""Groups of the degraded AllReduce begin, do their first collective and end, again and again; every tenth loses a rail meanwhile. A start
that is not done in time is a hang."""

import argparse
import random
import statistics
import sys
import time

from testing.lab import all_reduce_times
from testing.lab.cluster import Cluster, JobOptions
from testing.lab.lab import LabError, RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes
from tests.bench import in_namespaces
from tests.bench.in_namespaces import Figures, print_line

HANG_S = 60.0  # twice R2CC_DEADLINE_MS: by then what cannot go on has said so
FAULT_EVERY = 10
PRINT_EVERY = 50


def _start(cluster: Cluster, number: int, options: argparse.Namespace, chance: random.Random) -> float:
  """How long it took. LabError: it hung, failed, or its data is wrong."""
  name = f"start-{number}"
  begin_s = time.monotonic()
  job = cluster.start_job(name, JobOptions(size=options.size, seconds_max=0, flags=("-n", "1", "-w", "0", "--progress", "0", "--collnet")))
  lost = RailId(chance.randrange(options.members), chance.randrange(options.rails)) if number % FAULT_EVERY == 0 else None
  try:
    if lost is not None:
      time.sleep(chance.uniform(0, options.fault_within_ms / 1000))
      cluster.lab.cut(lost)
    if not job.wait(HANG_S):
      raise LabError(f"{name}, {lost} lost: not done after {HANG_S:g} s: {[rank.last_lines() for rank in job.ranks]}")
    if failures := job.failures():
      raise LabError(f"{lost} lost: {failures[0]}")
    all_reduce_times.time_of(job.report())
    return time.monotonic() - begin_s
  except ValueError as error:
    raise LabError(f"{name}: {error}") from error
  finally:
    job.kill()
    if lost is not None:
      cluster.lab.heal(lost)


def _measure(options: argparse.Namespace, cluster: Cluster) -> Figures:
  chance = random.Random(options.seed)
  took_s: list[float] = []
  faults, failed = 0, []
  for number in range(1, options.starts + 1):
    faults += number % FAULT_EVERY == 0
    try:
      took_s.append(_start(cluster, number, options, chance))
    except LabError as error:
      failed.append(str(error))
      print_line(f"start {number}: {error}")
    if number % PRINT_EVERY == 0:
      print_line(f"{number} of {options.starts} starts, {faults} with a fault: {len(failed)} failed")
  return {"members": options.members, "starts": options.starts, "with_fault": faults, "failed": len(failed),
          "hangs": sum("not done after" in line for line in failed),
          "start_s_median": round(statistics.median(took_s), 3) if took_s else None,
          "start_s_worst": round(max(took_s), 3) if took_s else None, "lines": failed[:10]}


def main() -> int:
  parser = argparse.ArgumentParser(prog="collnet_starts", description=__doc__)
  parser.add_argument("--starts", type=int, default=1000)
  parser.add_argument("--members", type=int, default=5)
  parser.add_argument("--rails", type=int, default=2)
  parser.add_argument("--size", default="256K", help="of the vector (default: %(default)s)")
  parser.add_argument("--fault-within-ms", type=float, default=200, help="after the start (default: %(default)s)")
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--json", action="store_true")
  options = parser.parse_args()
  lab = NamespaceLab(options.members, options.rails, None)

  def measure(cluster: Cluster, processes: Processes) -> Figures:
    del processes
    return _measure(options, cluster)

  return in_namespaces.run("collnet_starts", lab, measure, options.json, daemons=False)


if __name__ == "__main__":
  sys.exit(main())
