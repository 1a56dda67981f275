"""Statistics of interleaved pairs of runs. Pure.

A machine drifts (clocks, caches, neighbours), so the two sides of a comparison are run in turns and each pair gives one ratio. The median
of the ratios is bounded by order statistics: the distribution-free interval of the binomial sign test. It needs no assumption about noise,
is the same whenever it is computed, and errs on the wide side.
"""

import dataclasses
import math
import statistics
from typing import Sequence

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Median:
  """A median; `low` and `high` enclose the true one with at least 95 % confidence, None with fewer than 6 values."""
  value: float
  low: float | None
  high: float | None
  count: int


def bound_rank(count: int) -> int | None:
  """The largest K for which the K-th smallest and the K-th largest of `count` values enclose the median; 1 is the smallest."""
  tail, chance = 0.0, 0.5**count
  rank = None
  for below in range(count // 2):
    tail += chance * math.comb(count, below)
    if tail > (1 - CONFIDENCE) / 2:
      break
    rank = below + 1
  return rank


def median(values: Sequence[float]) -> Median:
  ordered = sorted(values)
  rank = bound_rank(len(ordered))
  if rank is None:
    return Median(statistics.median(ordered), None, None, len(ordered))
  return Median(statistics.median(ordered), ordered[rank - 1], ordered[-rank], len(ordered))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
  """Pair by pair."""
  if len(ours) != len(theirs):
    raise ValueError(f"{len(ours)} and {len(theirs)} runs are no pairs")
  return [one / other for one, other in zip(ours, theirs)]


def ours_first(pair: int) -> bool:
  """Who begins changes from pair to pair, so that a steady drift favours nobody."""
  return pair % 2 == 0
