"""The cases of //tests/bench:faults: what is done to a job, how often, and what is noted."""

import dataclasses
import time
from typing import Callable

from testing.lab.lab import RailId
from testing.lab.layout import rate_bits_per_s
from tests.bench import fault_figures, traffic
from tests.bench.fault_figures import Tally
from tests.bench.fault_stage import AFTER_FAULT_S, RAILS, SETTLE_S, Setup, Stage

# Both ends and all rails in turn.
ALL_RAILS = [RailId(node, rail) for rail in range(RAILS) for node in (0, 1)]
# A job is renewed after so many faults, so that what it remembers of its rails does not grow without end.
FAULTS_PER_JOB = len(ALL_RAILS)
DOUBLES_PER_JOB = 3
BETWEEN_CUTS_S, TAKE_OVER_S = 0.01, 0.05
FLAPS, FLAP_PERIOD_S = 20, 0.5
BLACKOUT_S = 3.0
GRAY_SHARE = 0.25
GOODPUT_S = 5.0
# A case that breaks its job again and again is not worth the time.
BROKEN_JOBS_MAX = 5


@dataclasses.dataclass(frozen=True)
class Case:
  """One case; `act` strikes one job with some of `wanted` runs and returns after at least one."""
  name: str
  runs: int
  quick_runs: int
  act: Callable[[Stage, Tally, Setup, int], None]


def run_case(case: Case, fabric: str, runs: int, setup: Setup) -> Tally:
  """Jobs until all runs are done."""
  tally = Tally(case.name, fabric)
  broken = 0
  while tally.runs < runs and broken < BROKEN_JOBS_MAX:
    before = tally.runs
    with Stage(setup, tally) as stage:
      case.act(stage, tally, setup, runs - tally.runs)
    broken += stage.broke
    tally.runs = max(tally.runs, before + 1)  # a job that broke before its first fault was a run, too
  return tally


def _lose_in_turn(stage: Stage, tally: Tally, wanted: int, lose: Callable[[RailId], int], heal: Callable[[RailId], int]) -> None:
  """One rail at a time, and back again."""
  begin = tally.runs
  stage.start()
  for number in range(begin, begin + min(wanted, FAULTS_PER_JOB)):
    rail = ALL_RAILS[number % len(ALL_RAILS)]
    stage.aim()
    stage.struck(lose(rail))
    tally.runs += 1
    stage.stay(AFTER_FAULT_S)
    if not stage.repair([rail], heal):
      break
    stage.stay(SETTLE_S)
  stage.stop()


def _cut(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  del setup
  _lose_in_turn(stage, tally, wanted, stage.lab.cut, stage.lab.heal)


def _silence(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  del setup
  _lose_in_turn(stage, tally, wanted, stage.lab.blackhole, stage.lab.unblackhole)


def _double(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  """Different rails of both ends, and then the rail that took over most of their traffic."""
  del setup
  lab = stage.lab
  begin = tally.runs
  stage.start()
  for number in range(begin, begin + min(wanted, DOUBLES_PER_JOB)):
    first, second = RailId(0, number % RAILS), RailId(1, (number + 1 + number // RAILS % (RAILS - 1)) % RAILS)
    stage.aim()
    stage.struck(lab.cut(first))
    time.sleep(BETWEEN_CUTS_S)
    lab.cut(second)
    before = stage.sent_bytes(0)
    time.sleep(TAKE_OVER_S)
    others = [f"rail{rail}" for rail in range(RAILS) if rail not in (first.rail, second.rail)]
    third = RailId(number % 2, int(traffic.busiest(before, stage.sent_bytes(0), others).removeprefix("rail")))
    lab.cut(third)
    tally.runs += 1
    stage.stay(AFTER_FAULT_S)
    if not stage.repair([first, second, third], lab.heal):
      break
    stage.stay(SETTLE_S)
  stage.stop()


def _different(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  """Two neighbours lose different rails for good."""
  del wanted
  tally.runs += 1
  lost = [RailId(0, tally.runs % RAILS), RailId(1, (tally.runs + 1 + tally.runs // RAILS % (RAILS - 1)) % RAILS)]
  stage.start(GOODPUT_S)
  healthy_gbps = stage.goodput_gbps(stage.healthy)
  stage.aim()
  for rail in lost:
    stage.struck(stage.lab.cut(rail))
  stage.stay(AFTER_FAULT_S)
  left_gbps = stage.goodput_gbps(stage.stay(GOODPUT_S))
  share = fault_figures.left_share(tally.fabric, [(rail.node, rail.rail) for rail in lost], RAILS)
  _note_goodput(tally, setup, left_gbps, healthy_gbps, share)
  stage.stop()


def _flap(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  del setup, wanted
  rail = ALL_RAILS[tally.runs % len(ALL_RAILS)]
  tally.runs += 1
  stage.start()
  begin_s = time.monotonic()
  for flap in range(FLAPS):
    stage.stay(begin_s + flap * FLAP_PERIOD_S - time.monotonic())
    stage.struck(stage.lab.cut(rail))
    stage.stay(begin_s + (flap + 0.5) * FLAP_PERIOD_S - time.monotonic())
    stage.lab.heal(rail)
  stage.stay(AFTER_FAULT_S)
  tally.flaps += FLAPS
  stage.repair([rail], stage.lab.heal)
  stage.stop()


def _blackout(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  """All rails of a node are down for 3 s."""
  del setup, wanted
  node = tally.runs % 2
  tally.runs += 1
  rails = [RailId(node, rail) for rail in range(RAILS)]
  stage.start()
  stage.aim()
  for index, rail in enumerate(rails):
    time_ns = stage.lab.cut(rail)
    if index == 0:
      stage.struck(time_ns)
  stage.stay(BLACKOUT_S)
  stage.resumes_after(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
  stage.repair(rails, stage.lab.heal)
  stage.stay(AFTER_FAULT_S)
  stage.stop()


def _gray(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  """One rail is re-shaped to a quarter of its rate, and no event says so."""
  del wanted
  rail = ALL_RAILS[tally.runs % len(ALL_RAILS)]
  tally.runs += 1
  stage.start(GOODPUT_S)
  healthy_gbps = stage.goodput_gbps(stage.healthy)
  stage.aim()
  stage.struck(stage.lab.reshape(rail, f"{rate_bits_per_s(setup.rate) * GRAY_SHARE / 1e6:g}mbit"))
  stage.stay(AFTER_FAULT_S)
  left_gbps = stage.goodput_gbps(stage.stay(2 * GOODPUT_S))
  _note_goodput(tally, setup, left_gbps, healthy_gbps, (RAILS - 1 + GRAY_SHARE) / RAILS)
  stage.stop()


def _dead_at_start(stage: Stage, tally: Tally, setup: Setup, wanted: int) -> None:
  """One rail is down before the job begins, and repaired later; the job's first traffic is what may stall."""
  del wanted
  rail = ALL_RAILS[tally.runs % len(ALL_RAILS)]
  tally.runs += 1
  stage.lab.cut(rail)
  stage.start(healthy_s=0)
  stage.struck(min(row.begin_ns for row in stage.rows if row.kind == "iteration"))
  stage.stay(SETTLE_S)
  left_gbps = stage.goodput_gbps(stage.stay(GOODPUT_S))
  stage.repair([rail], stage.lab.heal)
  stage.stay(SETTLE_S)
  stage.healthy = stage.stay(GOODPUT_S)
  _note_goodput(tally, setup, left_gbps, stage.goodput_gbps(stage.healthy), (RAILS - 1) / RAILS)
  stage.stop()


def _note_goodput(tally: Tally, setup: Setup, left_gbps: float, healthy_gbps: float, share: float) -> None:
  if healthy_gbps > 0:
    tally.goodput_ratios.append(left_gbps / (healthy_gbps * share))
  setup.print_line(f"  {tally.case} {tally.fabric}: {healthy_gbps:.3f} Gbit/s healthy, {left_gbps:.3f} Gbit/s degraded, "
                   f"{share:g} of the fabric is left")


CASES = (
    Case("cut", 100, 8, _cut),
    Case("silence", 16, 4, _silence),
    Case("double", 12, 3, _double),
    Case("different", 6, 1, _different),
    Case("flap", 3, 1, _flap),
    Case("blackout", 4, 1, _blackout),
    Case("gray", 4, 1, _gray),
    Case("dead-at-start", 8, 1, _dead_at_start),
)
