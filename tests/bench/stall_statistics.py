"""What many drills say together. Pure."""

import statistics
from typing import Any, Sequence

FIGURES = ("busbw_healthy_gbps", "busbw_degraded_gbps", "busbw_restored_gbps")


def by_fault(drills: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
  """Stalls and replays of all faults, by kind."""
  kinds = sorted({fault["kind"] for drill in drills for fault in drill["faults"]})
  result = {}
  for kind in kinds:
    faults = [fault for drill in drills for fault in drill["faults"] if fault["kind"] == kind]
    stalls_ms = sorted(fault["stall_ms"] for fault in faults if fault["stall_ms"] is not None)
    result[kind] = {
        "faults": len(faults),
        "stall_ms_median": statistics.median(stalls_ms) if stalls_ms else None,
        "stall_ms_worst": stalls_ms[-1] if stalls_ms else None,
        "stall_ms_all": stalls_ms,
        "standstill_ms_worst": max((fault["standstill_ms"] for fault in faults if fault["standstill_ms"] is not None), default=None),
        "replayed_faults": sum(1 for fault in faults if (fault["replayed_bytes"] or 0) > 0),
        "mid_iteration_faults": sum(1 for fault in faults if fault["mid_iteration"]),
    }
  return result


def figures(drills: Sequence[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
  """Median and worst of the bandwidths."""
  result: dict[str, dict[str, float | None]] = {}
  for name in FIGURES:
    values = [drill[name] for drill in drills if drill[name] is not None]
    result[name] = {"median": statistics.median(values) if values else None, "worst": min(values) if values else None}
  return result
