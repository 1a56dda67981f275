"""Cases in which rails fail under a loop of collectives."""

import time
from typing import Any, Callable

from testing.lab.lab import RailId, monotonic_ns
from testing.lab.layout import rate_bits_per_s
from tests.gpu import figures
from tests.gpu.bench import Bench, Context, Loop
from tests.gpu.job import JobBroken
from tests.gpu.placement import R2CC, SOCKET
from tests.gpu.stage import Stage

CUTS, QUICK_CUTS = 20, 3
FEW_CUTS, QUICK_FEW_CUTS = 5, 1
BETWEEN_CUTS_S = 0.05
FLAPS, FLAP_PERIOD_S = 20, 0.5
BLACKOUT_S = 3.0
GRAY_SHARE = 0.25
# NCCL Socket has PyTorch's time-out, and then its watchdog some time to end the process.
CONTROL_TIMEOUT_S, CONTROL_END_S = 20.0, 40.0


def _fabric(context: Context, bench: Bench) -> dict[str, Any]:
  return {"nodes": bench.stage.nodes, "ranks": bench.job.world, "rails": context.setup.rails, "rate": bench.stage.rate or "none",
          "daemon": bench.stage.has_daemons}


def _lose_in_turn(context: Context, case: str, bench: Bench, operation: str, count: int, lose: Callable[[RailId], int],
                  heal: Callable[[RailId], int]) -> None:
  """One rail for good, in steady state before and after; then one at a time, and back again."""
  results, rails = context.results, context.setup.rails
  with Loop(context, bench, operation) as loop:
    result = _fabric(context, bench) | {"size_mib": round(loop.size_bytes / 2**20, 2)} | loop.healthy()
    order = loop.rails[1:] + loop.rails[:1]  # another node's first rail to begin with
    loop.struck(lose(order[0]))
    result |= loop.against_healthy("degraded", loop.steady(), (rails - 1) / rails)
    results.add(case, f"{operation} steady", **result)
    good = loop.repair([order[0]], heal)
    result |= loop.against_healthy("repaired", loop.steady(), 1.0)
    for number in range(1, count):
      if not good:
        break
      rail = order[number % len(order)]
      loop.struck(lose(rail))
      good = loop.repair([rail], heal)
    results.add(case, operation, **result, **loop.found())


def _cuts(context: Context, few: bool = False) -> int:
  if few:
    return QUICK_FEW_CUTS if context.setup.quick else FEW_CUTS
  return QUICK_CUTS if context.setup.quick else CUTS


def cut(context: Context, case: str, daemons: bool = False) -> None:
  bench = context.bench(context.setup.nodes, daemons)
  _lose_in_turn(context, case, bench, "all_reduce", _cuts(context), bench.stage.lab.cut, bench.stage.lab.heal)


def cut_others(context: Context, case: str, daemons: bool = False) -> None:
  bench = context.bench(context.setup.nodes, daemons)
  for operation in ("all_gather", "reduce_scatter", "sendrecv") if context.setup.device == "cuda" else ("all_gather", "sendrecv"):
    _lose_in_turn(context, case, bench, operation, _cuts(context, few=True), bench.stage.lab.cut, bench.stage.lab.heal)


def silence(context: Context, case: str, daemons: bool = False) -> None:
  bench = context.bench(context.setup.nodes, daemons)
  lab = bench.stage.lab
  _lose_in_turn(context, case, bench, "all_reduce", _cuts(context, few=True), lab.blackhole, lab.unblackhole)


def both_ends(context: Context, case: str, daemons: bool = False) -> None:
  """The same rail of two neighbours, then different rails of them."""
  bench, rails = context.bench(context.setup.nodes, daemons), context.setup.rails
  for variant, other in (("same rail", 1), ("different rails", 2 % rails)):
    lost = [RailId(0, 1), RailId(1, other)]
    with Loop(context, bench) as loop:
      result = _fabric(context, bench) | loop.healthy()
      fault_ns = min([loop.lab.cut(rail) for rail in lost])
      loop.struck(fault_ns)
      left = (rails - len({rail.rail for rail in lost})) / rails
      result |= loop.against_healthy("degraded", loop.steady(), left)
      loop.repair(lost, loop.lab.heal)
      context.results.add(case, variant, **result, **loop.found())


def double(context: Context, case: str, daemons: bool = False) -> None:
  """A rail, and 50 ms later the one that took over most of its traffic."""
  bench, rails = context.bench(context.setup.nodes, daemons), context.setup.rails
  with Loop(context, bench) as loop:
    result = _fabric(context, bench) | loop.healthy()
    for number in range(_cuts(context, few=True)):
      node = number % bench.stage.nodes
      first, others = RailId(node, number % rails), [RailId(node, rail) for rail in range(rails) if rail != number % rails]
      before = {rail: bench.stage.sent_bytes(loop.job, rail) for rail in others}
      fault_ns = loop.lab.cut(first)
      time.sleep(BETWEEN_CUTS_S)
      second = max(others, key=lambda rail: bench.stage.sent_bytes(loop.job, rail) - before[rail])
      loop.lab.cut(second)
      loop.struck(fault_ns)
      if number == 0:
        result |= loop.against_healthy("degraded", loop.steady(), (rails - 2) / rails)
      if not loop.repair([first, second], loop.lab.heal):
        break
    context.results.add(case, "all_reduce", **result, **loop.found())


def flap(context: Context, case: str, daemons: bool = False) -> None:
  """A rail goes down and up 20 times in 10 s."""
  bench = context.bench(context.setup.nodes, daemons)
  rail, flaps = RailId(0, 1), 6 if context.setup.quick else FLAPS
  with Loop(context, bench) as loop:
    result = _fabric(context, bench) | loop.healthy()
    begin_ns, begin_s = monotonic_ns(), time.monotonic()
    for number in range(flaps):
      loop.lab.cut(rail)
      loop.job.stay(begin_s + (number + 0.5) * FLAP_PERIOD_S - time.monotonic())
      loop.lab.heal(rail)
      loop.job.stay(begin_s + (number + 1) * FLAP_PERIOD_S - time.monotonic())
    storm = figures.within(loop.job.rows, begin_ns, monotonic_ns())
    result |= loop.against_healthy("storm", storm, (context.setup.rails - 1) / context.setup.rails)
    result |= {"flaps": flaps}
    loop.repair([rail], loop.lab.heal)
    result |= loop.against_healthy("repaired", loop.steady(), 1.0)
    context.results.add(case, "all_reduce", **result, **loop.found())


def blackout(context: Context, case: str, daemons: bool = False) -> None:
  """All rails of a node are down for 3 s."""
  bench = context.bench(context.setup.nodes, daemons)
  rails = [RailId(0, rail) for rail in range(context.setup.rails)]
  with Loop(context, bench) as loop:
    result = _fabric(context, bench) | loop.healthy()
    for rail in rails:
      loop.lab.cut(rail)
    loop.job.stay(BLACKOUT_S, may_stand_still=True)
    repair_ns = min([loop.lab.heal(rail) for rail in rails])
    done = loop.job.done_count()
    loop.job.wait_rows(max(0, done + 2 - loop.job.done_count()), 30.0)
    after_ns = [row.end_ns for row in loop.job.rows if row.end_ns > repair_ns]
    result |= {"resumed_after_ms": round((min(after_ns) - repair_ns) / 1e6, 1)}
    loop.repair(rails, loop.lab.heal)
    result |= loop.against_healthy("repaired", loop.steady(), 1.0)
    context.results.add(case, "all_reduce", **result, **loop.found())


def restore(context: Context, case: str, daemons: bool = False) -> None:
  """How soon a repaired rail carries its share again."""
  bench = context.bench(context.setup.nodes, daemons)
  rails = context.setup.rails
  with Loop(context, bench) as loop:
    result = _fabric(context, bench) | loop.healthy()
    for number in range(1 if context.setup.quick else 3):
      rail = RailId(number % bench.stage.nodes, (number + 2) % rails)
      loop.lab.cut(rail)
      result |= loop.against_healthy("degraded", loop.steady(), (rails - 1) / rails)
      repair_ns = loop.lab.heal(rail)
      if not loop.repair([rail], loop.lab.heal):
        break
      result |= loop.against_healthy("repaired", loop.steady(), 1.0)
      limit_ns = (loop.healthy_s or 0) * 1.1 * 1e9
      full = [row.end_ns for row in loop.job.rows if row.begin_ns > repair_ns and row.took_ns < limit_ns]
      result.setdefault("full_speed_after_ms", []).append(round((min(full) - repair_ns) / 1e6, 1) if full else None)
    context.results.add(case, "all_reduce", **result, **loop.found())


def gray(context: Context, case: str, daemons: bool = False) -> None:
  """One rail is shaped to a quarter of its rate, and no event says so."""
  bench, rails = context.bench(context.setup.nodes, daemons), context.setup.rails
  if bench.stage.rate is None:
    raise ValueError("a rail that is not shaped cannot be shaped to a part of its rate; give --rate")
  rail = RailId(1 % bench.stage.nodes, 2 % rails)
  with Loop(context, bench) as loop:
    result = _fabric(context, bench) | loop.healthy()
    fault_ns = loop.lab.reshape(rail, f"{rate_bits_per_s(bench.stage.rate) * GRAY_SHARE / 1e6:g}mbit")
    loop.struck(fault_ns)
    result |= loop.against_healthy("gray", loop.steady(2.0), (rails - 1 + GRAY_SHARE) / rails)
    loop.lab.reshape(rail, bench.stage.rate)
    result |= loop.against_healthy("repaired", loop.steady(3.0), 1.0)
    context.results.add(case, "all_reduce", **result, **loop.found())


def dead_at_start(context: Context, case: str, daemons: bool = False) -> None:
  """A rail is down before the job begins, and is repaired under it."""
  context.end_bench()
  rails = context.setup.rails
  for rail in (RailId(0, 0), RailId(1, 1))[:1 if context.setup.quick else 2]:
    with Stage(context.setup, case, context.setup.nodes, context.setup.rate, daemons) as stage:
      stage.lab.cut(rail)
      begin_s = time.monotonic()
      bench = Bench(stage, stage.start_job("r2cc", R2CC, environment={"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET",
                                                                      "R2CC_LOG": "info"}))
      started_s = round(time.monotonic() - begin_s, 1)
      with Loop(context, bench) as loop:
        degraded = loop.steady()
        back = loop.repair([rail], loop.lab.heal)
        result = _fabric(context, bench) | {"started_s": started_s, "came_back": back} | loop.healthy()
        result |= loop.against_healthy("degraded", degraded, (rails - 1) / rails)
        context.results.add(case, str(rail), **result, **loop.found())
      context.results.add(case, f"{rail} exit", **stage.end_job(bench.job))


def groups(context: Context, case: str, daemons: bool = False) -> None:
  bench = context.bench(max(4, context.setup.nodes), daemons)
  _lose_in_turn(context, case, bench, "groups", _cuts(context, few=True), bench.stage.lab.cut, bench.stage.lab.heal)


def graphs(context: Context, case: str, daemons: bool = False) -> None:
  if context.setup.device != "cuda":
    raise ValueError("CUDA graphs need a GPU")
  bench = context.bench(context.setup.nodes, daemons)
  _lose_in_turn(context, case, bench, "graph", _cuts(context, few=True), bench.stage.lab.cut, bench.stage.lab.heal)


def nodes8(context: Context, case: str, daemons: bool = False) -> None:
  bench = context.bench(8, daemons)
  _lose_in_turn(context, case, bench, "all_reduce", _cuts(context, few=True), bench.stage.lab.cut, bench.stage.lab.heal)


def two_by_two(context: Context, case: str, daemons: bool = False) -> None:
  bench = context.bench(2, daemons, per_node=2)
  for operation in ("all_reduce", "all_gather"):
    _lose_in_turn(context, case, bench, operation, _cuts(context, few=True), bench.stage.lab.cut, bench.stage.lab.heal)


def socket_control(context: Context, case: str, daemons: bool = False) -> None:
  """NCCL's own Socket transport, struck in the same way; what happens is the finding."""
  del daemons
  context.end_bench()
  rail = RailId(0, 1)
  with Stage(context.setup, case, context.setup.nodes, context.setup.rate) as stage:
    bench = Bench(stage, stage.start_job("socket", SOCKET, timeout_s=CONTROL_TIMEOUT_S))
    with Loop(context, bench) as loop:
      result = _fabric(context, bench) | loop.healthy()
      fault_ns = loop.lab.cut(rail) if case == "socket-cut" else loop.lab.blackhole(rail)
      outcome, words = "survived", ""
      try:
        deadline_s = time.monotonic() + CONTROL_TIMEOUT_S + CONTROL_END_S
        while time.monotonic() < deadline_s:
          loop.job.look(0.1)
          last_ns = max(row.end_ns for row in loop.job.rows)
          if last_ns > fault_ns + 10e9 and monotonic_ns() - last_ns < 1e9:
            break
        else:
          outcome = "hangs"
      except JobBroken as broken:
        outcome, words = "died", str(broken)[:400]
      done_ns = [row.end_ns for row in loop.job.rows]
      result |= {"outcome": outcome, "seconds_after_fault": round((monotonic_ns() - fault_ns) / 1e9, 1), "words": words,
                 "iterations_after_fault": sum(1 for end_ns in done_ns if end_ns > fault_ns),
                 "last_iteration_after_fault_s": round((max(done_ns) - fault_ns) / 1e9, 2), "wrong": loop.job.wrong}
      context.results.add(case, "NCCL Socket", **result)
      loop.is_over = outcome != "survived"
