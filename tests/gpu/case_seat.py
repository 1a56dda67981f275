"""The free seat of NCCL's tree: jobs with and without libr2cc-nccl.so live at the same time and take turns, on fewer rails and on all."""

import re
from typing import Any, Sequence

from deploy.drill.rig.binaries import built_file
from deploy.drill.rig.lab import RailId
from tests.gpu import figures
from tests.gpu.bench import MIB, SETTLE_S, Context
from tests.gpu.case_collnet import check_data
from tests.gpu.case_healthy import Item, in_turns
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.stage import Stage

SEAT, BALANCE = "seat", "balance"
# Of the nodes, the rate of each of four rails; where the rails are the limit and not the processors.
WORLDS = ((4, "8gbit"), (4, "2gbit"), (8, "2gbit"))
# Bytes, first iterations, iterations of a block: several, as the fill of a tree is partly hidden behind the call before.
ITEMS: Sequence[Item] = ((16 * MIB, 0, 10), (32 * MIB, 0, 8), (64 * MIB, 0, 6), (256 * MIB, 0, 3))
QUICK_ITEMS: Sequence[Item] = ((32 * MIB, 0, 8), (256 * MIB, 0, 3))
HEALTHY_ITEMS: Sequence[Item] = ((8, 10, 100), (8192, 10, 100), (MIB, 5, 50), (16 * MIB, 2, 10), (64 * MIB, 1, 4), (256 * MIB, 1, 2))
PAIRS, QUICK_PAIRS, HEALTHY_PAIRS, QUICK_HEALTHY_PAIRS = 5, 3, 40, 8
# Calls from one agreement to the next: few, so that a switch is soon there; NCCL's default is 256.
EVERY, LOADED_EVERY = 64, 2
# A switch takes six agreements; what is not there after so many calls does not come.
SETTLE_ROUNDS, SETTLE_CALLS, SETTLE_BYTES = 12, 2 * EVERY, 1024
SWITCHES, QUICK_SWITCHES, SWITCH_S = 60, 30, 45.0
LOAD_BYTES, EAGER_COMMUNICATORS = 32 * MIB, 3
THERE, BACK = "uses NCCL's tree in another order", "is NCCL's own again"


def environment(context: Context, every: int) -> dict[str, str]:
  """Of a job that has the interposer."""
  libraries = [built_file("nccl/libr2cc-nccl.so"), *([context.setup.nccl] if context.setup.nccl is not None else [])]
  return {"LD_PRELOAD": ":".join(map(str, libraries)), "R2CC_SEAT": "1", "R2CC_SEAT_EVERY": str(every), "NCCL_TUNER_PLUGIN": "r2cc"}


def _lines(job: Job, words: str) -> list[str]:
  return [line for line in job.logs(0).splitlines() if words in line]


def _settle(job: Job, words: str | None, count: int) -> bool:
  """Small calls until there are so many lines with `words`; without any, all the calls. False: they did not come."""
  for _ in range(SETTLE_ROUNDS):
    job.ask({"do": "measure", "operation": "all_reduce", "items": [[SETTLE_BYTES, 0, SETTLE_CALLS]]}, 60.0)
    if words is not None and len(_lines(job, words)) >= count:
      return True
  return words is None


def _table(context: Context, rows: list[Sequence[str]]) -> None:
  head = ("nodes", "rails", "lost", "MiB", "Balance ms", "seat ms", "seat / Balance (95 %)", "expected")
  widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
  for row in [head, *rows]:
    context.results.say("  " + "  ".join(text.rjust(width) for text, width in zip(row, widths)))


def _measured(context: Context, stage: Stage, jobs: dict[str, Job], items: Sequence[Item], pairs: int) -> list[dict[str, Any]]:
  """By size."""
  in_turns(context, stage, jobs, [(size, 0, 1) for size, _, _ in items], range(1))
  found = in_turns(context, stage, jobs, items, range(pairs))
  said = []
  for index, (size, _, _) in enumerate(items):
    means = {name: [timed.mean_s for timed in times[index]] for name, times in found.items()}
    said.append({"size_bytes": context.setup.size(size) if size >= MIB else size,
                 **{f"{name}_ms": round(1e3 * (figures.percentile(seconds, 0.5) or 0.0), 4) for name, seconds in means.items()},
                 "seat_over_balance": figures.ratio_words(means[SEAT], means[BALANCE])})
  return said


def _faults(nodes: int, rails: int, quick: bool) -> list[tuple[str, list[RailId], bool]]:
  """Name, rails that are lost, and whether a seat is expected. Node 1 stands inside the tree."""
  half = [RailId(1, rail) for rail in range(rails // 2)]
  found = [(f"{rails // 2} of {rails} of a node", half, True)]
  if not quick:
    found.append((f"1 of {rails} of a node", [RailId(1, 0)], nodes > 4))
    if nodes >= 8:
      found.append((f"{rails // 2} of {rails} of two nodes", half + [RailId(4, rail) for rail in range(rails // 2)], True))
  return found


def seat(context: Context, case: str, daemons: bool = False) -> None:
  """With the interposer over without it, on the rails that are left; every element is checked while the seat is in use."""
  context.end_bench()
  setup, rows = context.setup, []
  items, pairs = (QUICK_ITEMS, QUICK_PAIRS) if setup.quick else (ITEMS, PAIRS)
  for nodes, rate in WORLDS:
    with Stage(setup, f"{case}{nodes}", nodes, rate, daemons) as stage:
      jobs = {SEAT: stage.begin_job(SEAT, R2CC, environment=environment(context, EVERY)), BALANCE: stage.begin_job(BALANCE, R2CC)}
      for job in jobs.values():
        job.wait_ready()
      common = {"nodes": nodes, "rails": setup.rails, "rate": rate, "daemon": daemons}
      for name, lost, is_expected in _faults(nodes, setup.rails, setup.quick):
        there = len(_lines(jobs[SEAT], THERE))
        for rail in lost:
          stage.lab.cut(rail)
        for job in jobs.values():
          job.stay(SETTLE_S, may_stand_still=True)
        if not _settle(jobs[SEAT], THERE if is_expected else None, there + 1):
          raise JobBroken(f"{name} lost: no switch to the tree; {jobs[SEAT].last_words()}")
        words = _lines(jobs[SEAT], THERE)[there:]
        expected = re.search(r"expected (\d\.\d+)", words[-1]) if words else None
        for said in _measured(context, stage, jobs, items, pairs):
          ratio = said["seat_over_balance"]
          context.results.add(case, f"{name} lost", **common, **said, expected_for_large=expected and float(expected.group(1)))
          rows.append((str(nodes), rate, name, str(said["size_bytes"] // MIB), f"{said['balance_ms']:.1f}", f"{said['seat_ms']:.1f}",
                       f"{ratio['ratio']} ({ratio['low']} to {ratio['high']})", expected.group(1) if expected else "-"))
        context.results.add(case, f"{name} lost, data", **common, line=words[-1][-250:] if words else "", **check_data(context, jobs[SEAT]))
        for rail in lost:
          stage.lab.heal(rail)
        for job in jobs.values():
          job.stay(SETTLE_S, may_stand_still=True)
        if words and not _settle(jobs[SEAT], BACK, len(_lines(jobs[SEAT], THERE))):
          raise JobBroken(f"{name} repaired: no switch back; {jobs[SEAT].last_words()}")
      for name, job in jobs.items():
        context.results.add(case, f"{name} exit", **common, **stage.end_job(job))
  _table(context, rows)


def healthy(context: Context, case: str, daemons: bool = False) -> None:
  """What the interposer costs while all rails are there."""
  context.end_bench()
  setup = context.setup
  with Stage(setup, case, 4, setup.rate, daemons) as stage:
    jobs = {SEAT: stage.begin_job(SEAT, R2CC, environment=environment(context, 256)), BALANCE: stage.begin_job(BALANCE, R2CC)}
    for job in jobs.values():
      job.wait_ready()
    for said in _measured(context, stage, jobs, HEALTHY_ITEMS, QUICK_HEALTHY_PAIRS if setup.quick else HEALTHY_PAIRS):
      ratio = said["seat_over_balance"]
      context.results.add(case, "on over off", nodes=4, rate=setup.rate or "none", daemon=daemons, **said)
      context.results.say(f"  {said['size_bytes']:10d} B  off {said['balance_ms']:9.3f} ms  on {said['seat_ms']:9.3f} ms  "
                          f"{ratio['ratio']} ({ratio['low']} to {ratio['high']})")
    for name, job in jobs.items():
      context.results.add(case, f"{name} exit", **stage.end_job(job))


def switches(context: Context, case: str, daemons: bool = False) -> None:
  """There and back under load: three communicators that reduce eagerly, and a captured graph, each element checked."""
  context.end_bench()
  setup = context.setup
  count = QUICK_SWITCHES if setup.quick else SWITCHES
  with Stage(setup, case, 4, setup.rate, daemons) as stage:
    job = stage.start_job(SEAT, R2CC, environment=environment(context, LOADED_EVERY))
    job.begin({"do": "loop", "operation": "seats", "size_bytes": setup.size(LOAD_BYTES)})
    job.wait_rows(3, 60.0)
    begin_rows = len(job.rows)
    seconds: list[float] = []
    done = 0
    while done < count:
      # Another node than the last time, so that each seat is a communicator of its own.
      lost = [RailId(1 + done // 2 % 2, rail) for rail in range(setup.rails // 2)]
      words, act = (THERE, stage.lab.cut) if done % 2 == 0 else (BACK, stage.lab.heal)
      before = len(_lines(job, words))
      for rail in lost:
        act(rail)
      waited = 0.0
      while len(_lines(job, words)) < before + EAGER_COMMUNICATORS:
        job.stay(0.2)
        waited += 0.2
        if waited > SWITCH_S:
          raise JobBroken(f"switch {done + 1} has not come after {waited:.0f} s; {job.last_words()}")
      job.wait_rows(2, 60.0)
      seconds.append(waited)
      done += 1
    rows = job.rows
    job.stop_loop()
    usual = figures.median_cycle_ms(rows[begin_rows:]) or 0.0
    longest = figures.longest_cycle_ms(rows[begin_rows:], rows[begin_rows].begin_ns, rows[-1].end_ns)
    context.results.add(case, "there and back", nodes=4, rate=setup.rate or "none", daemon=daemons, switches=done, wrong=job.wrong,
                        iterations=job.done_count(), usual_cycle_ms=figures.rounded(usual), longest_cycle_ms=figures.rounded(longest),
                        stall_ms=figures.rounded(None if longest is None else longest - usual), switch_s=figures.spread(seconds, 1))
    context.results.add(case, "exit", **stage.end_job(job))
