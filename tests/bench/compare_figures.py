"""What interleaved runs of two plugins say: figures per size and number of rails, and the tables of a report. Pure."""

import dataclasses
import statistics
from typing import Any, Callable, Sequence

from tests.bench import paired
from tests.bench.perf_run import Measured

# What the project asks of itself; printed beside the figures, and nothing fails by it.
BUSBW_RATIO_ASKED, CPU_RATIO_ASKED, TIME_RATIO_HIGH_ASKED = 1.0, 1.15, 1.05


@dataclasses.dataclass(frozen=True)
class Pair:
  """The same size, run by both plugins one after the other."""
  ours: Measured
  theirs: Measured


def _both(pairs: Sequence[Pair], of: Callable[[Measured], float]) -> tuple[float, float, paired.Median]:
  ours, theirs = [of(pair.ours) for pair in pairs], [of(pair.theirs) for pair in pairs]
  return statistics.median(ours), statistics.median(theirs), paired.median(paired.ratios(ours, theirs))


def _ratio(name: str, found: paired.Median) -> dict[str, float | None]:
  shown = lambda value: None if value is None else round(value, 4)
  return {name: shown(found.value), f"{name}_low": shown(found.low), f"{name}_high": shown(found.high)}


def large(rails: int, size_bytes: int, pairs: Sequence[Pair], limit_gbps: float | None) -> dict[str, Any]:
  """One size that is bound by bandwidth."""
  ours, theirs, ratio = _both(pairs, lambda measured: measured.busbw_gbps)
  ours_cpu, theirs_cpu, cpu_ratio = _both(pairs, lambda measured: measured.cpu_s_per_gb)
  figures: dict[str, Any] = {"rails": rails, "size_bytes": size_bytes, "pairs": len(pairs), "r2cc_busbw_gbps": round(ours, 3),
                             "plain_busbw_gbps": round(theirs, 3)}
  figures |= _ratio("busbw_ratio", ratio)
  figures |= {"r2cc_cpu_s_per_gb": round(ours_cpu, 4), "plain_cpu_s_per_gb": round(theirs_cpu, 4)} | _ratio("cpu_ratio", cpu_ratio)
  if limit_gbps:
    figures |= {"r2cc_of_iperf3": round(ours / limit_gbps, 3), "plain_of_iperf3": round(theirs / limit_gbps, 3)}
  figures["as_asked"] = ratio.value >= BUSBW_RATIO_ASKED and cpu_ratio.value <= CPU_RATIO_ASKED
  return figures


def small(rails: int, size_bytes: int, pairs: Sequence[Pair]) -> dict[str, Any]:
  """One size that is bound by latency. The ratio is that of nccl-tests' time, the mean over a run's iterations; the ratio of the runs'
  median iterations stands beside it, because a few interrupted iterations weigh much in a mean of microseconds."""
  ours, theirs, ratio = _both(pairs, lambda measured: measured.time_us)
  _, _, median_ratio = _both(pairs, lambda measured: measured.time_us_median)
  figures: dict[str, Any] = {"rails": rails, "size_bytes": size_bytes, "pairs": len(pairs), "r2cc_time_us": round(ours, 2),
                             "plain_time_us": round(theirs, 2)}
  figures |= _ratio("time_ratio", ratio) | _ratio("median_time_ratio", median_ratio)
  figures["as_asked"] = ratio.high is not None and ratio.high <= TIME_RATIO_HIGH_ASKED
  return figures


def size_text(size_bytes: int) -> str:
  """As r2cc-perf's flags have it."""
  for unit, scale in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
    if size_bytes >= scale and size_bytes % scale == 0:
      return f"{size_bytes // scale}{unit}"
  return str(size_bytes)


def _bounded(figures: dict[str, Any], name: str) -> str:
  low, high = figures[f"{name}_low"], figures[f"{name}_high"]
  bounds = "too few pairs" if low is None else f"{low:.3f}..{high:.3f}"
  return f"{figures[name]:.3f} ({bounds})"


def large_table(rows: Sequence[dict[str, Any]]) -> list[str]:
  lines = [f"{'rails':>5} {'size':>5} {'r2cc':>8} {'plain':>8} {'busbw ratio':>22} {'r2cc':>8} {'plain':>8} {'CPU ratio':>22} "
           f"{'of iperf3: r2cc':>15} {'plain':>6}  as asked",
           f"{'':>11} {'Gbit/s':>8} {'Gbit/s':>8} {'(95 % bounds)':>22} {'CPU s/GB':>8} {'CPU s/GB':>8} {'(95 % bounds)':>22}"]
  for row in rows:
    of_limit = [f"{row[name]:.2f}" if name in row else "?" for name in ("r2cc_of_iperf3", "plain_of_iperf3")]
    lines.append(f"{row['rails']:>5} {size_text(row['size_bytes']):>5} {row['r2cc_busbw_gbps']:>8.2f} {row['plain_busbw_gbps']:>8.2f} "
                 f"{_bounded(row, 'busbw_ratio'):>22} {row['r2cc_cpu_s_per_gb']:>8.3f} {row['plain_cpu_s_per_gb']:>8.3f} "
                 f"{_bounded(row, 'cpu_ratio'):>22} {of_limit[0]:>15} {of_limit[1]:>6}  {'yes' if row['as_asked'] else 'NO'}")
  return lines


def small_table(rows: Sequence[dict[str, Any]]) -> list[str]:
  lines = [f"{'rails':>5} {'size':>5} {'r2cc us':>9} {'plain us':>9} {'time ratio (95 % b.)':>22} {'of median iterations':>22}  as asked"]
  for row in rows:
    lines.append(f"{row['rails']:>5} {size_text(row['size_bytes']):>5} {row['r2cc_time_us']:>9.1f} {row['plain_time_us']:>9.1f} "
                 f"{_bounded(row, 'time_ratio'):>22} {_bounded(row, 'median_time_ratio'):>22}  {'yes' if row['as_asked'] else 'NO'}")
  return lines


def limit_table(rows: Sequence[dict[str, Any]]) -> list[str]:
  return [f"iperf3, {row['rails']} rail{'s' if row['rails'] > 1 else ''}: {row['both_ways_gbps']:.2f} Gbit/s each way with both loaded, "
          f"{row['one_way_gbps']:.2f} Gbit/s with one (median of {row['runs']})" for row in rows]
