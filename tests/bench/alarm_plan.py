"""Which ranks are stopped when, and what a run without faults said of itself. Pure."""

import dataclasses
import random
from typing import Any

STOP_S_MIN, STOP_S_MAX = 1.0, 40.0
GAP_S_MIN, GAP_S_MAX = 3.0, 10.0
# So often a stop outlasts the deadline, and so often the next one begins before it has ended.
LONG_EVERY, OVERLAP_EVERY = 4, 5
BUSY_PEER = "may be stopped or very busy"


@dataclasses.dataclass(frozen=True)
class Stop:
  """A rank that is stopped for a while; times count from the start of the plan."""
  at_s: float
  rank: int
  seconds: float

  @property
  def end_s(self) -> float:
    return self.at_s + self.seconds


def plan(seconds: float, ranks: int, deadline_s: float, seed: int) -> list[Stop]:
  """Stops that all end within `seconds`; the same for the same seed. A rank is not stopped again before it ran for a while."""
  source = random.Random(seed)
  stops: list[Stop] = []
  now_s = GAP_S_MIN
  while True:
    number = len(stops)
    if number % LONG_EVERY == LONG_EVERY - 1 and deadline_s < STOP_S_MAX:
      length_s = source.uniform(max(STOP_S_MIN, min(deadline_s + 1, STOP_S_MAX)), STOP_S_MAX)
    else:  # short ones are as likely as long ones, by order of magnitude
      length_s = STOP_S_MIN * (STOP_S_MAX / STOP_S_MIN)**source.random()
    rank = source.randrange(ranks)
    if stops and number % OVERLAP_EVERY == OVERLAP_EVERY - 1:
      rank = (stops[-1].rank + source.randrange(1, ranks)) % ranks
      now_s = max(now_s - source.uniform(GAP_S_MAX, 2 * GAP_S_MAX), stops[-1].at_s + 0.5)
    now_s = max([now_s] + [stop.end_s + GAP_S_MIN for stop in stops if stop.rank == rank])
    if now_s + length_s > seconds:
      return stops
    stops.append(Stop(round(now_s, 3), rank, round(length_s, 3)))
    now_s = max(stop.end_s for stop in stops) + source.uniform(GAP_S_MIN, GAP_S_MAX)


@dataclasses.dataclass
class Alarms:
  """Of one run."""
  seconds: float = 0.0
  stops: list[Stop] = dataclasses.field(default_factory=list)  # that were done
  deadline_s: float = 0.0
  hogs: int = 0
  iterations: int = 0
  migrations: int = 0
  waiting_lines: int = 0  # the plugin's word that a peer may be stopped
  wrong: int = 0
  late_writes: int = 0
  errors: list[str] = dataclasses.field(default_factory=list)
  given_up_lines: list[str] = dataclasses.field(default_factory=list)  # what the plugins said of their migrations

  def json_object(self) -> dict[str, Any]:
    return {
        "case": "no-false-alarm",
        "minutes": round(self.seconds / 60, 2),
        "stops": len(self.stops),
        "stop_s_max": max((stop.seconds for stop in self.stops), default=None),
        "stops_beyond_deadline": sum(1 for stop in self.stops if stop.seconds > self.deadline_s),
        "deadline_s": self.deadline_s,
        "hogs": self.hogs,
        "iterations": self.iterations,
        "waiting_lines": self.waiting_lines,
        "migrations": self.migrations,
        "errors": len(self.errors),
        "wrong": self.wrong,
        "late_writes": self.late_writes,
        "as_asked": not (self.migrations or self.errors or self.wrong or self.late_writes) and bool(self.stops),
    } | ({"first_error": self.errors[0]} if self.errors else {})

  def text(self) -> str:
    result = self.json_object()
    return (f"{result['minutes']:g} minutes, {self.hogs} CPU hogs, {result['stops']} stops of up to {result['stop_s_max'] or 0:g} s "
            f"({result['stops_beyond_deadline']} beyond the deadline of {self.deadline_s:g} s), {self.iterations} iterations: "
            f"{self.migrations} migrations, {len(self.errors)} errors, {self.wrong} wrong elements, {self.late_writes} late writes "
            f"(asked: 0 of each)")
