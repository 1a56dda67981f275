"""Figures out of traces, seen from outside the plugin. Pure."""

import dataclasses
import statistics
from typing import Iterable, Sequence

from deploy.drill.rig.traces import Row

STALL_WINDOW_NS = 2_000_000_000


@dataclasses.dataclass(frozen=True)
class Window:
  """A stretch of CLOCK_MONOTONIC, its end left out."""
  begin_ns: int
  end_ns: int

  @property
  def seconds(self) -> float:
    return (self.end_ns - self.begin_ns) / 1e9


def longest_wait_ns(rows: Iterable[Row], window: Window) -> int:
  """The longest part of `window` in which one flow had a request outstanding and none of its requests completed."""
  longest = 0
  for row in rows:
    if row.kind in ("send", "recv", "open"):
      longest = max(longest, min(row.time_ns, window.end_ns) - max(row.begin_ns, window.begin_ns))
  return longest


def stall_ms(rows: Sequence[Row], fault_ns: int, healthy: Window, now_ns: int | None = None) -> float:
  """How much longer than when healthy a flow waited within 2 s of a fault.

  The healthy statistic is that of a window of the same length at the end of `healthy`. A trace that is still being written has no
  `open` rows yet: with `now_ns`, a rank that completed nothing since counts as waiting until then.
  """
  window = Window(fault_ns, fault_ns + STALL_WINDOW_NS)
  quiet = Window(max(healthy.begin_ns, healthy.end_ns - STALL_WINDOW_NS), healthy.end_ns)
  usual_ns = longest_wait_ns(rows, quiet)
  stall_ns = longest_wait_ns(rows, window)
  if now_ns is not None:
    last = last_completion_ns(rows)
    if last is not None:
      stall_ns = max(stall_ns, min(now_ns, window.end_ns) - max(last, window.begin_ns))
  return max(0.0, (stall_ns - usual_ns) / 1e6)


def last_completion_ns(rows: Iterable[Row]) -> int | None:
  """When anything last completed anywhere."""
  return max((row.time_ns for row in rows if row.kind in ("send", "recv")), default=None)


def iterations_inside(rows: Iterable[Row], window: Window) -> list[Row]:
  """Collectives that began and ended in `window`."""
  return [row for row in rows if row.kind == "iteration" and window.begin_ns <= row.begin_ns and row.time_ns <= window.end_ns]


def bus_bandwidth_gbps(rows: Iterable[Row], window: Window, ranks: int) -> float | None:
  """The median all_reduce wholly inside `window`, by nccl-tests' formula in 1e9 bit/s; None: there was none."""
  factor = 2 * (ranks - 1) / ranks
  figures = [row.size_bytes * 8 * factor / row.wait_ns for row in iterations_inside(rows, window) if row.wait_ns > 0]
  return statistics.median(figures) if figures else None


def mid_iteration(rows: Iterable[Row], time_ns: int) -> bool:
  """Whether some rank was inside a collective then."""
  return any(row.kind == "iteration" and row.begin_ns < time_ns < row.time_ns for row in rows)


def received_bytes(rows: Iterable[Row], window: Window) -> int:
  return sum(row.size_bytes for row in rows if row.kind == "recv" and window.begin_ns <= row.time_ns < window.end_ns)


def goodput_gbps(rows: Iterable[Row], window: Window, ranks: int) -> float:
  """What one rank received, on average over ranks and time."""
  return received_bytes(rows, window) * 8 / ranks / (window.end_ns - window.begin_ns) if window.end_ns > window.begin_ns else 0.0


def goodput_bins_gbps(rows: Iterable[Row], window: Window, bins: int, ranks: int) -> list[float]:
  """goodput_gbps() of `bins` equal parts of `window`, in one pass."""
  width_ns = (window.end_ns - window.begin_ns) / bins
  sums = [0] * bins
  for row in rows:
    if row.kind == "recv" and window.begin_ns <= row.time_ns < window.end_ns:
      sums[min(bins - 1, int((row.time_ns - window.begin_ns) / width_ns))] += row.size_bytes
  return [size * 8 / ranks / width_ns for size in sums]
