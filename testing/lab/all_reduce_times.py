"""Computes the least time of an AllReduce, and reads the time that r2cc-perf reports. Pure."""

from typing import Any, Mapping, Sequence


def all_reduce_bound_s(size_bytes: int, member_bits_per_s: Sequence[float]) -> float:
  """No schedule is faster at line rate (docs/internals/schedules.md): the slowest member's vector, and all receipts over all members."""
  bits = 8 * size_bytes
  return max(bits / min(member_bits_per_s), 2 * (len(member_bits_per_s) - 1) * bits / sum(member_bits_per_s))


def time_of(report: Mapping[str, Any]) -> tuple[int, float]:
  """For the only size in r2cc-perf's JSON object: bytes, and seconds in the median iteration. ValueError: its data is not correct."""
  (row,) = report["rows"]
  if report.get("pass") is not True:
    raise ValueError(f"r2cc-perf did not pass: {report.get('error', 'wrong data')}")
  return int(row["size_bytes"]), float(row["time_us_median"]) * 1e-6
