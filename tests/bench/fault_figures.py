"""What the runs of one case of faults amount to: percentiles, the JSON object, and what is asked of it. Pure."""

import dataclasses
import math
import re
from typing import Any, Sequence

CUT_P99_MS_ASKED = 20.0
SILENCE_MARGIN_MS_ASKED = 50.0
GOODPUT_RATIO_ASKED = 0.95
MIGRATIONS_PER_FLAP_ASKED = 2.0

_GIVEN_UP = re.compile(r"\blink \S.* given up \(")


@dataclasses.dataclass
class Tally:
  """Grows while a case runs; one entry a fault, or a run, or a job."""
  case: str
  fabric: str
  runs: int = 0
  waits_ms: list[float] = dataclasses.field(default_factory=list)  # the longest wait in the 2 s after each fault
  waits_with_pauses_ms: list[float] = dataclasses.field(default_factory=list)  # the same with what the machine itself stood still
  healthy_waits_ms: list[float] = dataclasses.field(default_factory=list)  # the same of 2 healthy seconds, one a job
  resumes_ms: list[float] = dataclasses.field(default_factory=list)  # from a repair until something completed again
  recoveries_s: list[float] = dataclasses.field(default_factory=list)  # from a repair until the rail carried data again
  goodput_ratios: list[float] = dataclasses.field(default_factory=list)  # of what the fabric leaves
  flaps: int = 0
  given_up: int = 0  # links that a plugin moved its traffic off, in all jobs
  wrong: int = 0
  late_writes: int = 0
  tcp_timeouts: list[int] = dataclasses.field(default_factory=list)  # of both nodes, one a job
  errors: list[str] = dataclasses.field(default_factory=list)  # one line for each job that did not end well
  not_recovered: int = 0

  @property
  def stalls_ms(self) -> list[float]:
    """By how much waits exceed the healthy one, the median over jobs: one bad healthy second of one job must not hide its stalls."""
    healthy_ms = percentile(self.healthy_waits_ms, 0.5) or 0.0
    return [max(0.0, wait_ms - healthy_ms) for wait_ms in self.waits_ms]


def percentile(values: Sequence[float], share: float) -> float | None:
  """By nearest rank: a value that occurred, the largest one where there are too few; None of nothing."""
  return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def given_up_lines(log: str) -> list[str]:
  """Of a rank's standard error with R2CC_LOG=info: each is a link that was fenced and whose traffic moved elsewhere."""
  return [line for line in log.splitlines() if _GIVEN_UP.search(line)]


def links_given_up(log: str) -> int:
  return len(given_up_lines(log))


def left_share(fabric: str, lost: Sequence[tuple[int, int]], rails: int) -> float:
  """What two neighbours can still move when each direction of a rail is a resource of its own; `lost`: (node, rail).

  A full fabric lets any rail of one end talk to any of the other, so the end with fewer rails decides. In a rail fabric a rail is lost
  to both as soon as one of them has lost it.
  """
  if fabric == "rail":
    return (rails - len({rail for _, rail in lost})) / rails
  return min(rails - len({rail for node, rail in lost if node == end}) for end in (0, 1)) / rails


def missed(tally: Tally, silence_ms: int) -> list[str]:
  """What was asked and is not so, one line each."""
  reasons = [f"{value} {name}" for name, value in (("wrong elements", tally.wrong), ("late writes", tally.late_writes),
                                                    ("errors", len(tally.errors))) if value]
  p99_ms, max_ms = percentile(tally.stalls_ms, 0.99), max(tally.stalls_ms, default=None)
  if tally.runs == 0:
    reasons.append("nothing ran")
  if tally.case == "cut" and (p99_ms is None or p99_ms > CUT_P99_MS_ASKED):
    reasons.append(f"p99 above {CUT_P99_MS_ASKED:g} ms")
  if tally.case == "silence" and (max_ms is None or max_ms > silence_ms + SILENCE_MARGIN_MS_ASKED):
    reasons.append(f"a stall above {silence_ms + SILENCE_MARGIN_MS_ASKED:g} ms")
  if tally.case in ("different", "gray"):
    # The median hides the one job in which a sound rail lay idle; the worst alone does not say whether that is the rule.
    for name, share in (("median", 0.5), ("worst", 0.0)):
      ratio = percentile(tally.goodput_ratios, share)
      if ratio is None or ratio < GOODPUT_RATIO_ASKED:
        reasons.append(f"{name} goodput below {GOODPUT_RATIO_ASKED:g} of what is left")
  if tally.case == "gray" and tally.given_up > 0:
    reasons.append(f"{tally.given_up} fences")
  if tally.case == "flap" and (tally.flaps == 0 or tally.given_up / tally.flaps > MIGRATIONS_PER_FLAP_ASKED):
    reasons.append(f"more than {MIGRATIONS_PER_FLAP_ASKED:g} migrations a flap")
  if tally.case in ("cut", "silence", "double", "flap") and tally.given_up == 0:
    reasons.append("no migration was counted: the plugin's log does not say so")
  return reasons


def _rounded(value: float | None, digits: int) -> float | None:
  return None if value is None else round(value, digits)


def json_object(tally: Tally, silence_ms: int) -> dict[str, Any]:
  """One line of --json. A figure that a case does not have is null or left out."""
  result: dict[str, Any] = {
      "case": tally.case,
      "fabric": tally.fabric,
      "stall_ms_p50": _rounded(percentile(tally.stalls_ms, 0.5), 2),
      "stall_ms_p99": _rounded(percentile(tally.stalls_ms, 0.99), 2),
      "stall_ms_max": _rounded(max(tally.stalls_ms, default=None), 2),
      "wrong": tally.wrong,
      "late_writes": tally.late_writes,
      "errors": len(tally.errors),
      "runs": tally.runs,
      "migrations": tally.given_up,
      "wait_ms_p50": _rounded(percentile(tally.waits_ms, 0.5), 2),
      "wait_ms_p99": _rounded(percentile(tally.waits_ms, 0.99), 2),
      "wait_with_pauses_ms_p99": _rounded(percentile(tally.waits_with_pauses_ms, 0.99), 2),
      "wait_with_pauses_ms_max": _rounded(max(tally.waits_with_pauses_ms, default=None), 2),
      "healthy_wait_ms_p50": _rounded(percentile(tally.healthy_waits_ms, 0.5), 2),
      "healthy_wait_ms_max": _rounded(max(tally.healthy_waits_ms, default=None), 2),
      "tcp_timeouts": sum(tally.tcp_timeouts),
  }
  if tally.goodput_ratios:
    result |= {"goodput_ratio": _rounded(percentile(tally.goodput_ratios, 0.5), 4),
               "goodput_ratio_min": _rounded(min(tally.goodput_ratios), 4)}
  if tally.resumes_ms:
    result |= {"resume_ms_p50": _rounded(percentile(tally.resumes_ms, 0.5), 2), "resume_ms_max": _rounded(max(tally.resumes_ms), 2)}
  if tally.recoveries_s or tally.not_recovered:
    result |= {"recovery_s_p50": _rounded(percentile(tally.recoveries_s, 0.5), 2),
               "recovery_s_max": _rounded(max(tally.recoveries_s, default=None), 2), "not_recovered": tally.not_recovered}
  if tally.flaps:
    result |= {"flaps": tally.flaps, "migrations_per_flap": round(tally.given_up / tally.flaps, 3)}
  if tally.case == "gray":
    result["fences"] = tally.given_up
  reasons = missed(tally, silence_ms)
  result |= {"as_asked": not reasons, "missed": reasons}
  if tally.errors:
    result["first_error"] = tally.errors[0]
  return result


def table_header() -> str:
  return (f"{'case':14} {'fabric':6} {'runs':>4} {'stall ms: p50':>13} {'p99':>8} {'max':>8} {'wrong':>5} {'late':>4} {'errors':>6} "
          f"{'goodput':>7} {'worst':>6} {'more':34} as asked")


def table_row(result: dict[str, Any]) -> str:
  """Of a JSON object."""
  shown = lambda name, digits=1: "-" if result.get(name) is None else f"{result[name]:.{digits}f}"
  more = [f"{text} {result[name]:g}" for name, text in (("migrations_per_flap", "migrations/flap"), ("fences", "fences"),
                                                       ("resume_ms_max", "resumed ms <="), ("recovery_s_max", "back s <="),
                                                       ("not_recovered", "not back")) if result.get(name) is not None]
  return (f"{result['case']:14} {result['fabric']:6} {result['runs']:>4} {shown('stall_ms_p50'):>13} {shown('stall_ms_p99'):>8} "
          f"{shown('stall_ms_max'):>8} {result['wrong']:>5} {result['late_writes']:>4} {result['errors']:>6} "
          f"{shown('goodput_ratio', 3):>7} {shown('goodput_ratio_min', 3):>6} "
          f"{', '.join(more):34} {'yes' if result['as_asked'] else 'NO: ' + '; '.join(result['missed'])}")
