"""What r2ccd costs while nothing happens: two nodes of 8 rails in network namespaces, each with a daemon that probes the other's rails,
and one job of two processes, attached and then stopped. Prints figures; fails only if the rig does. Needs root."""

import argparse
import sys
import time

from testing.lab.cluster import Cluster, Job, JobOptions
from testing.lab.lab import LabError
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import wait_until
from tests.bench import in_namespaces, machine
from tests.bench.in_namespaces import Figures, print_line

NODES = 2
START_S, SETTLE_S = 60.0, 5.0


def parse_arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="idle", description=__doc__, allow_abbrev=False)
  parser.add_argument("--seconds", type=float, default=60, help="to watch, with and without a job each (default: %(default)s)")
  parser.add_argument("--rails", type=int, default=8, help="of each node (default: %(default)s)")
  parser.add_argument("--tls", action="store_true", help="the daemons know each other by certificates (default: insecure)")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object; all else goes to standard error")
  options = parser.parse_args()
  if options.seconds < 1 or not 1 <= options.rails <= 16:
    parser.error("--seconds must be at least 1, --rails 1 to 16")
  return options


def pairs_up(cluster: Cluster, active: bool) -> int:
  """Pairs of n1 with n0 that answer; `active`: those alone that a job uses."""
  pairs = cluster.ctl_json(1, "path", "probe", "n1", "n0").get("pairs", [])
  return sum(pair["state"] == "up" and pair.get("active", False) >= active for pair in pairs)


def start_job(cluster: Cluster) -> Job:
  """Has moved data, and does not any more; its rails stay attached, and the daemons take their pairs for used."""
  job = cluster.start_job("job", JobOptions(size="1M", seconds_max=24 * 3600))
  if not wait_until(lambda: any(row.kind == "iteration" for row in job.follower.poll()) or job.dead_rank() is not None, START_S, 0.1) or \
      job.dead_rank() is not None:
    raise LabError(f"the job did not start: {' / '.join(rank.last_lines() for rank in job.ranks)}")
  if not wait_until(lambda: pairs_up(cluster, active=True) == cluster.lab.rails, START_S, 0.2):
    raise LabError("the daemons do not probe the job's rails")
  for rank in job.ranks:
    rank.pause()
  return job


def watch(cluster: Cluster, seconds: float) -> float:
  """The busier daemon's share of one core."""
  time.sleep(SETTLE_S)  # what the start has left to do
  pids = [cluster.daemon(node).pid for node in range(NODES)]
  began_s, before = time.monotonic(), [machine.process_cpu_seconds(pid) for pid in pids]
  time.sleep(seconds)
  used = [machine.process_cpu_seconds(pid) - start for pid, start in zip(pids, before)]
  return max(used) / (time.monotonic() - began_s)


def measure(options: argparse.Namespace, cluster: Cluster) -> Figures:
  facts = machine.describe()
  print_line(machine.headline(facts))
  others = machine.OthersShare()
  cluster.start_daemons()
  if not wait_until(lambda: pairs_up(cluster, active=False) == options.rails, START_S, 0.2):
    raise LabError("not every pair of rails is probed and answers")
  print_line(f"{options.seconds:g} s without a job")
  alone = watch(cluster, options.seconds)
  job = start_job(cluster)
  print_line(f"{options.seconds:g} s with a job that sleeps")
  with_job = watch(cluster, options.seconds)
  if cluster.attached_processes(0) != 1 or job.dead_rank() is not None:
    raise LabError("the job did not stay attached")
  memory_mib = max(machine.peak_memory_mib(cluster.daemon(node).pid) for node in range(NODES))
  facts["others_share"] = round(others.share(), 3)
  if (warning := machine.warning(facts)) is not None:
    print_line(warning)
  return {"nodes": NODES, "rails": options.rails, "tls": options.tls, "seconds": options.seconds, "core_share_without_job": round(alone, 5),
          "core_share": round(with_job, 5), "memory_peak_mib": round(memory_mib, 1), "machine": facts}


def main() -> int:
  options = parse_arguments()
  return in_namespaces.run("idle", NamespaceLab(NODES, options.rails, rate="500mbit"), lambda cluster, _: measure(options, cluster),
                           options.json, tls=options.tls)


if __name__ == "__main__":
  sys.exit(main())
