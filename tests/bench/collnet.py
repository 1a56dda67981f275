"""The degraded AllReduce without a GPU: r2cc-perf over the plugin's CollNet table beside its ring over the net table, in turns, healthy and
with rails of the first node lost before the job begins; against the line-rate bound of docs/internals/schedules.md."""

import argparse
import statistics
import sys
from typing import Any

from testing.lab import all_reduce_times
from testing.lab.cluster import Cluster, JobOptions
from testing.lab.lab import LabError, RailId
from testing.lab.layout import rate_bits_per_s
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes
from tests.bench import in_namespaces, machine
from tests.bench.in_namespaces import Figures, print_line

RUN_S = 120.0
WAYS = {"collnet": ("--collnet",), "ring": ()}


def _time_of(cluster: Cluster, name: str, options: argparse.Namespace, size: str, way: str) -> tuple[int, float]:
  flags = ("-n", str(options.iterations), "-w", "2", "--progress", "0", *WAYS[way])
  environment = dict(pair.split("=", 1) for pair in options.env)
  job = cluster.start_job(name, JobOptions(size=size, seconds_max=0, environment=environment, flags=flags))
  try:
    if not job.wait(RUN_S):
      raise LabError(f"{name}: not done after {RUN_S:g} s: {job.ranks[0].last_lines()}")
    if failures := job.failures():
      raise LabError(failures[0])
    return all_reduce_times.time_of(job.report())
  except ValueError as error:
    raise LabError(f"{name}: {error}") from error
  finally:
    job.kill()


def _measure_size(options: argparse.Namespace, cluster: Cluster, size: str) -> Figures:
  lab, result = cluster.lab, {}
  rail_bits_per_s = rate_bits_per_s(options.rate)
  times_s: dict[tuple[str, int], list[float]] = {}
  busy: dict[int, list[float]] = {}
  size_bytes = 0
  for number in range(options.rounds):
    for lost in options.lost:
      for rail in range(lost):
        lab.cut(RailId(0, rail))
      for way in options.ways:
        before = machine.cpu_seconds()
        size_bytes, seconds = _time_of(cluster, f"{way}-{size}-{lost}-{number}", options, size, way)
        after = machine.cpu_seconds()
        busy.setdefault(lost, []).append(machine.busy_share(before, after))
        times_s.setdefault((way, lost), []).append(seconds)
        print_line(f"{size}, round {number + 1} of {options.rounds}: {lost} rails lost, {way}: {1e3 * seconds:.1f} ms")
      for rail in range(lost):
        lab.heal(RailId(0, rail))
  for lost in options.lost:
    rates = [rail_bits_per_s * (options.rails - lost)] + [rail_bits_per_s * options.rails] * (options.nodes - 1)
    bound_s = all_reduce_times.all_reduce_bound_s(size_bytes, rates)
    row: dict[str, Any] = {"bound_ms": round(1e3 * bound_s, 2), "busy_share": round(statistics.median(busy[lost]), 3)}
    for way in options.ways:
      all_s = times_s[way, lost]
      median_s = statistics.median(all_s)
      row |= {f"{way}_ms": round(1e3 * median_s, 2), f"{way}_spread_ms": round(1e3 * (max(all_s) - min(all_s)), 2),
              f"{way}_over_bound": round(median_s / bound_s, 3),
              f"{way}_over_healthy": round(median_s / statistics.median(times_s[way, options.lost[0]]), 3)}
    if set(WAYS) <= set(options.ways):
      pairs = zip(times_s["collnet", lost], times_s["ring", lost], strict=True)
      row["collnet_over_ring"] = round(statistics.median(collnet / ring for collnet, ring in pairs), 3)
    result[f"{size}, {lost} of {options.rails} lost"] = row
  return result


def _measure(options: argparse.Namespace, cluster: Cluster) -> Figures:
  result: Figures = {}
  for size in options.size:
    result |= _measure_size(options, cluster, size)
  return result


def main() -> int:
  parser = argparse.ArgumentParser(prog="collnet", description=__doc__)
  parser.add_argument("--nodes", type=int, default=4)
  parser.add_argument("--rails", type=int, default=4)
  parser.add_argument("--rate", default="50mbit", help="of each rail; so low that the processors are not the limit (default: %(default)s)")
  parser.add_argument("--size", default="8M", help="of the vector; several are measured one after the other (default: %(default)s)")
  parser.add_argument("--lost", default="0,1,2", help="rails of the first node, in turn (default: %(default)s)")
  parser.add_argument("--ways", default="collnet,ring", help="which to run, in turn (default: %(default)s)")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--iterations", type=int, default=4)
  parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="in the environment of all ranks")
  parser.add_argument("--json", action="store_true")
  options = parser.parse_args()
  options.ways, options.size = options.ways.split(","), options.size.split(",")
  if unknown := [way for way in options.ways if way not in WAYS]:
    parser.error(f"there is no way {', '.join(unknown)}; there are {', '.join(WAYS)}")
  options.lost = [int(lost) for lost in options.lost.split(",")]
  lab = NamespaceLab(options.nodes, options.rails, options.rate)

  def measure(cluster: Cluster, processes: Processes) -> Figures:
    del processes
    return _measure(options, cluster)

  return in_namespaces.run("collnet", lab, measure, options.json, daemons=False)


if __name__ == "__main__":
  sys.exit(main())
