"""A node has lost half of its rails: the AllReduce as NCCL's ring does it, whose bytes go over the rails that are left (Balance), and as
the plugin's own schedule does it."""

import dataclasses
from typing import Callable

from testing.lab.all_reduce_times import all_reduce_bound_s, time_of
from testing.lab.cluster import Cluster, JobOptions
from testing.lab.lab import LabError, RailId
from testing.lab.layout import rate_bits_per_s

# So slow that rails are the limit, and not the processors of one machine that has all nodes.
RATE = "100mbit"
SIZE = "8M"
RUN_S = 60.0
BALANCE, DEGRADED = "Balance, NCCL's ring", "degraded AllReduce"
WAYS = {BALANCE: (), DEGRADED: ("--collnet",)}
# A group learns what its members' rails can carry when it has begun, and the first 16 operations, four in a vector of SIZE, are stamped by
# then: four iterations know nothing of the loss.
WARM_UP = 6


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Seconds of an all_reduce of SIZE over rails of RATE."""
  lost: int  # of the first node's
  rails: int
  seconds: dict[str, float]  # by way
  bound_s: float  # no schedule is quicker: docs/internals/schedules.md


def _time(cluster: Cluster, name: str, flags: tuple[str, ...], iterations: int) -> tuple[int, float]:
  flags = ("-n", str(iterations), "-w", str(WARM_UP), "--progress", "0", *flags)
  job = cluster.start_job(name, JobOptions(size=SIZE, seconds_max=0, flags=flags))
  try:
    if not job.wait(RUN_S):
      raise LabError(f"{name}: not done after {RUN_S:g} s: {job.ranks[0].last_lines()}")
    if failures := job.failures():
      raise LabError(failures[0])
    return time_of(job.report())
  except ValueError as error:
    raise LabError(f"{name}: {error}") from error
  finally:
    job.kill()


def compare(cluster: Cluster, iterations: int, print_line: Callable[[str], None]) -> Comparison:
  """No job runs, and all rails are up, before and after. LabError: a way hangs, fails, or its data is not right."""
  lab = cluster.lab
  for node in range(lab.nodes):
    for rail in range(lab.rails):
      lab.reshape(RailId(node, rail), RATE)
  lost = [RailId(0, rail) for rail in range(lab.rails // 2)]
  for rail in lost:
    lab.cut(rail)
  seconds: dict[str, float] = {}
  size_bytes = 0
  try:
    for number, (way, flags) in enumerate(WAYS.items()):
      size_bytes, seconds[way] = _time(cluster, f"way{number}", flags, iterations)
      print_line(f"{way}: {1000 * seconds[way]:.0f} ms")
  finally:
    for rail in lost:
      lab.heal(rail)
  rate = rate_bits_per_s(RATE)
  members = [rate * (lab.rails - len(lost))] + [rate * lab.rails] * (lab.nodes - 1)
  return Comparison(len(lost), lab.rails, seconds, all_reduce_bound_s(size_bytes, members))
