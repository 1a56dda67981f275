"""What times of iterations, steps and tokens amount to. Pure. Times are CLOCK_MONOTONIC in ns."""

import dataclasses
import hashlib
import math
import statistics
from typing import Any, Iterable, Sequence

from tests.bench import paired
from tests.bench.fault_figures import percentile

# A stall is looked for so long after a fault.
STALL_WINDOW_NS = 2_000_000_000


@dataclasses.dataclass(frozen=True)
class Row:
  """One iteration: the collective alone from begin to end, on the rank that took longest."""
  iteration: int
  begin_ns: int
  end_ns: int

  @property
  def took_ns(self) -> int:
    return self.end_ns - self.begin_ns


def merge(by_rank: Sequence[dict[int, tuple[int, int]]]) -> list[Row]:
  """Of the iterations that all ranks have reported: from the last begin to the last end."""
  if not by_rank:
    return []
  common = set(by_rank[0]).intersection(*by_rank[1:])
  return [Row(number, max(rows[number][0] for rows in by_rank), max(rows[number][1] for rows in by_rank)) for number in sorted(common)]


def bus_factor(operation: str, world: int) -> float:
  """nccl-tests': bytes on the busiest link for each byte of the operation's size."""
  if operation == "all_reduce":
    return 2 * (world - 1) / world
  if operation in ("all_gather", "reduce_scatter", "all_to_all"):
    return (world - 1) / world
  return 1.0


def busbw_gbps(operation: str, size_bytes: int, world: int, seconds: float) -> float:
  """1e9 bit/s."""
  return bus_factor(operation, world) * size_bytes * 8 / seconds / 1e9


def within(rows: Iterable[Row], begin_ns: int, end_ns: int) -> list[Row]:
  """Those that lie wholly in between."""
  return [row for row in rows if row.begin_ns >= begin_ns and row.end_ns <= end_ns]


def mean_s(rows: Sequence[Row]) -> float | None:
  return statistics.fmean(row.took_ns for row in rows) / 1e9 if rows else None


def median_ms(rows: Sequence[Row]) -> float | None:
  return statistics.median(row.took_ns for row in rows) / 1e6 if rows else None


def cycles_ns(rows: Sequence[Row]) -> list[tuple[int, int]]:
  """(end of one iteration, time until the next one ended): all that a job waits is in some cycle, checks and hand-shakes too."""
  return [(before.end_ns, after.end_ns - before.end_ns) for before, after in zip(rows, rows[1:]) if after.iteration == before.iteration + 1]


def longest_cycle_ms(rows: Sequence[Row], begin_ns: int, end_ns: int) -> float | None:
  """Of the cycles that touch the window."""
  found = [length for start, length in cycles_ns(rows) if start < end_ns and start + length > begin_ns]
  return max(found) / 1e6 if found else None


def median_cycle_ms(rows: Sequence[Row]) -> float | None:
  lengths = [length for _, length in cycles_ns(rows)]
  return statistics.median(lengths) / 1e6 if lengths else None


def stall_ms(rows: Sequence[Row], fault_ns: int, usual_ms: float) -> float | None:
  """The longest cycle in the 2 s after a fault, less what is usual."""
  longest = longest_cycle_ms(rows, fault_ns, fault_ns + STALL_WINDOW_NS)
  return None if longest is None else max(0.0, longest - usual_ms)


def rounded(value: float | None, digits: int = 3) -> float | None:
  return None if value is None else round(value, digits)


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
  """Median, worst and number of some values."""
  return {"p50": rounded(percentile(values, 0.5), digits), "max": rounded(max(values, default=None), digits), "count": len(values)}


def ratio_fields(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
  """The median ratio of interleaved pairs with its 95 % bounds."""
  median = paired.median(paired.ratios(ours, theirs))
  return {"ratio": rounded(median.value, 4), "low": rounded(median.low, 4), "high": rounded(median.high, 4), "pairs": median.count}


def digest(words: Iterable[str]) -> str:
  """One short text for many: equal if and only if all are."""
  return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def exposed_share(with_sync_s: float, without_sync_s: float) -> float:
  """How much of a step is communication that nothing hides."""
  return max(0.0, 1 - without_sync_s / with_sync_s)


def overhead_percent(ours_s: float, control_s: float) -> float:
  return 100 * (ours_s / control_s - 1)


def phases(marks: Sequence[int], steps: int) -> list[tuple[int, int]]:
  """[from, to) of the steps between events; a step that an event hits belongs to no phase."""
  found, begin = [], 0
  for mark in [*sorted(marks), steps]:
    if mark > begin:
      found.append((begin, mark))
    begin = mark + 1
  return found


def fault_steps(steps: int) -> list[int]:
  """When the three faults and the repair of a training run happen: cut, silence, repair of the cut, cut of another node."""
  return [steps * share // 100 for share in (20, 40, 60, 80)]


def mean_losses(by_rank: Sequence[Sequence[str]]) -> list[float]:
  """Of each step over all ranks, exactly rounded: the order of ranks makes no difference. The words are float.hex()'s."""
  return [math.fsum(float.fromhex(word) for word in words) / len(words) for words in zip(*by_rank)]


def distance(ours: Sequence[float], others: Sequence[float]) -> float:
  """Of two curves: the root of the mean square."""
  return math.sqrt(statistics.fmean((one - other)**2 for one, other in zip(ours, others, strict=True)))


def within_noise(curve: Sequence[float], undisturbed: Sequence[Sequence[float]], factor: float) -> tuple[float, float, bool]:
  """How far a loss curve is from the nearest of two undisturbed ones, how far these are from each other, and whether it is at most
  `factor` times as far."""
  nearest, noise = min(distance(curve, other) for other in undisturbed), distance(*undisturbed)
  return nearest, noise, nearest <= factor * noise
