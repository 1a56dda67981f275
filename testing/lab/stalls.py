"""Computes figures from traces, which are taken outside the plugin. Pure."""

import dataclasses
import statistics
from typing import Iterable, Sequence

from testing.lab.traces import Row

STALL_WINDOW_NS = 2_000_000_000
# How far into an iteration a fault occurs.
STRIKE_EARLIEST, STRIKE_LATEST = 0.3, 0.7


@dataclasses.dataclass(frozen=True)
class Window:
  """An interval of CLOCK_MONOTONIC without its end."""
  begin_ns: int
  end_ns: int

  @property
  def seconds(self) -> float:
    return (self.end_ns - self.begin_ns) / 1e9


def longest_wait_ns(rows: Iterable[Row], window: Window, pauses: Sequence[Window] = ()) -> int:
  """The longest part of `window` in which one flow had a request outstanding and none of its requests completed, without the parts in
  `pauses`."""
  longest = 0
  for row in rows:
    if row.kind in ("send", "recv", "open"):
      wait = Window(max(row.begin_ns, window.begin_ns), min(row.time_ns, window.end_ns))
      if wait.end_ns - wait.begin_ns > longest:
        longest = max(longest, wait.end_ns - wait.begin_ns - overlap_ns(pauses, wait))
  return longest


def overlap_ns(windows: Iterable[Window], other: Window) -> int:
  """How much of `other` is in `windows`, which do not overlap."""
  return sum(max(0, min(window.end_ns, other.end_ns) - max(window.begin_ns, other.begin_ns)) for window in windows)


def waits(rows: Iterable[Row], window: Window, least_ns: int) -> list[Window]:
  """The parts of `window` in which some flow waited for `least_ns` or longer, in order; they do not overlap."""
  found: list[Window] = []
  for row in sorted(rows, key=lambda row: row.begin_ns):
    wait = Window(max(row.begin_ns, window.begin_ns), min(row.time_ns, window.end_ns))
    if row.kind not in ("send", "recv", "open") or wait.end_ns - wait.begin_ns < least_ns:
      continue
    if found and wait.begin_ns <= found[-1].end_ns:
      found[-1] = Window(found[-1].begin_ns, max(found[-1].end_ns, wait.end_ns))
    else:
      found.append(wait)
  return found


def longest_standstill_ns(rows: Iterable[Row], window: Window) -> int:
  """The longest part of `window` in which some flow had a request outstanding and no request of any flow completed."""
  completions = [row for row in rows if row.kind in ("send", "recv", "open") and row.time_ns > window.begin_ns]
  completions.sort(key=lambda row: row.time_ns)
  longest, waiting_since_ns = 0, window.end_ns
  for index in reversed(range(len(completions))):
    row = completions[index]
    waiting_since_ns = min(waiting_since_ns, row.begin_ns)
    before_ns = completions[index - 1].time_ns if index > 0 else window.begin_ns
    longest = max(longest, min(row.time_ns, window.end_ns) - max(before_ns, waiting_since_ns, window.begin_ns))
  return longest


def stall_ms(rows: Sequence[Row], fault_ns: int, healthy: Window, now_ns: int | None = None, pauses: Sequence[Window] = ()) -> float:
  """How much longer than when healthy a flow waited within 2 s of a fault, without the parts in `pauses`.

  The healthy statistic is that of a window of the same length at the end of `healthy`. A trace that is still being written has no `open`
  rows yet: with `now_ns`, a rank that completed nothing since counts as waiting until then.
  """
  window = _after(fault_ns)
  stall_ns = longest_wait_ns(rows, window, pauses)
  last_ns = last_completion_ns(rows)
  if now_ns is not None and last_ns is not None:
    silent = Window(max(last_ns, window.begin_ns), min(now_ns, window.end_ns))
    stall_ns = max(stall_ns, silent.end_ns - silent.begin_ns - overlap_ns(pauses, silent))
  return max(0.0, (stall_ns - longest_wait_ns(rows, _end_of(healthy), pauses)) / 1e6)


def standstill_ms(rows: Sequence[Row], fault_ns: int, healthy: Window) -> float:
  """How much longer than when healthy nothing completed on any flow within 2 s of a fault."""
  return max(0.0, (longest_standstill_ns(rows, _after(fault_ns)) - longest_standstill_ns(rows, _end_of(healthy))) / 1e6)


def _after(fault_ns: int) -> Window:
  return Window(fault_ns, fault_ns + STALL_WINDOW_NS)


def _end_of(healthy: Window) -> Window:
  return Window(max(healthy.begin_ns, healthy.end_ns - STALL_WINDOW_NS), healthy.end_ns)


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


def middle_of_iteration(rows: Sequence[Row]) -> Window | None:
  """When the iteration that `rows` of one rank end in will be in its middle; None: the rows show none that runs."""
  ended = next((row for row in reversed(rows) if row.kind == "iteration"), None)
  if ended is None:
    return None
  begun = next((row for row in rows if row.kind in ("send", "recv") and row.time_ns > ended.time_ns), None)
  if begun is None:
    return None
  return Window(round(begun.time_ns + STRIKE_EARLIEST * ended.wait_ns), round(begun.time_ns + STRIKE_LATEST * ended.wait_ns))


def received_bytes(rows: Iterable[Row], window: Window) -> int:
  return sum(row.size_bytes for row in rows if row.kind == "recv" and window.begin_ns <= row.time_ns < window.end_ns)


def collective_spans(rows: Sequence[Row], end_ns: int) -> list[Window]:
  """When each rank was inside a collective; one that has not ended lasts until `end_ns`. Between collectives ranks only check their
  data."""
  ended_ns: dict[int, int] = {}
  spans = []
  for row in rows:
    if row.kind == "iteration":
      spans.append(Window(row.begin_ns, row.time_ns))
      ended_ns[row.rank] = max(row.time_ns, ended_ns.get(row.rank, 0))
  begun_ns: dict[int, int] = {}
  for row in rows:
    if row.kind in ("send", "recv") and row.time_ns > ended_ns.get(row.rank, 0):
      begun_ns[row.rank] = min(row.time_ns, begun_ns.get(row.rank, row.time_ns))
  return spans + [Window(begin_ns, end_ns) for begin_ns in begun_ns.values() if begin_ns < end_ns]


def goodput_bins_gbps(rows: Sequence[Row], window: Window, bins: int) -> list[float]:
  """What a rank received while it was inside a collective, on average over ranks, in `bins` equal parts of `window`."""
  width_ns = (window.end_ns - window.begin_ns) / bins
  sizes, times_ns = [0] * bins, [0.0] * bins
  for row in rows:
    if row.kind == "recv" and window.begin_ns <= row.time_ns < window.end_ns:
      sizes[min(bins - 1, int((row.time_ns - window.begin_ns) / width_ns))] += row.size_bytes
  for span in collective_spans(rows, window.end_ns):
    begin, end = (max(0.0, min(float(bins), (time_ns - window.begin_ns) / width_ns)) for time_ns in (span.begin_ns, span.end_ns))
    for index in range(int(begin), min(bins, int(end) + 1)):
      times_ns[index] += max(0.0, min(end, index + 1) - max(begin, index)) * width_ns
  return [size * 8 / time_ns if time_ns > 0 else 0.0 for size, time_ns in zip(sizes, times_ns)]


def goodput_gbps(rows: Sequence[Row], window: Window) -> float:
  """The same for a whole window."""
  return goodput_bins_gbps(rows, window, 1)[0] if window.end_ns > window.begin_ns else 0.0
