"""The free seat of NCCL's tree: jobs with and without libr2cc-nccl.so live at the same time and take turns, on fewer rails and on all."""

import re
import time
from typing import Any, Sequence

from testing.lab.binaries import built_file
from testing.lab.lab import RailId
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
# Nodes of two GPUs, two ranks on each of four cards: the ring passes all eight ranks, the tree's seats are the nodes'.
PAIR_WORLDS, PER_PAIR = ((4, "8gbit"), (4, "2gbit")), 2
# What --nodes asks for, and the numbers of nodes that no other case has: two have no slack, an odd number has one seat of load D.
GIVEN_RATE, OTHER_COUNTS = "2gbit", (2, 3, 5, 7)
# Bytes, first iterations, iterations of a block: several, as the fill of a tree is partly hidden behind the call before.
ITEMS: Sequence[Item] = ((16 * MIB, 0, 10), (32 * MIB, 0, 8), (64 * MIB, 0, 6), (256 * MIB, 0, 3))
QUICK_ITEMS: Sequence[Item] = ((32 * MIB, 0, 8), (256 * MIB, 0, 3))
HEALTHY_ITEMS: Sequence[Item] = ((8, 10, 100), (8192, 10, 100), (MIB, 5, 50), (16 * MIB, 2, 10), (64 * MIB, 1, 4), (256 * MIB, 1, 2))
COUNT_ITEMS: Sequence[Item] = ((256 * MIB, 0, 2),)
PAIRS, QUICK_PAIRS, COUNT_PAIRS = 5, 3, 2
# Where a job's threads come to sit decides by more than the interposer costs, for as long as the job lives: so several lives, and a second
# job without it, which differs from the first by chance alone.
HEALTHY_LIVES, QUICK_HEALTHY_LIVES, LIFE_PAIRS, QUICK_LIFE_PAIRS = 4, 1, 10, 8
AGAIN = "balance-again"
# Calls from one agreement to the next: few, so that a switch is soon there; the default is 256.
EVERY, LOADED_EVERY = 64, 2
# A switch takes six agreements; what is not there after so many calls does not come.
SETTLE_ROUNDS, SETTLE_CALLS, SETTLE_BYTES = 12, 2 * EVERY, 1024
SWITCHES, QUICK_SWITCHES, SWITCH_S = 60, 30, 45.0
LOAD_BYTES, EAGER_COMMUNICATORS = 32 * MIB, 3
THERE, BACK = "uses NCCL's tree in another order", "is NCCL's own again"


def environment(context: Context, every: int, variable: str = "LD_PRELOAD") -> dict[str, str]:
  """Of a job that has the interposer."""
  result = {} if context.setup.nccl is None else {"LD_PRELOAD": str(context.setup.nccl)}
  result[variable] = ":".join([str(built_file("nccl/libr2cc-nccl.so")), *([result[variable]] if variable in result else [])])
  return result | {"R2CC_SEAT": "1", "R2CC_SEAT_EVERY": str(every), "NCCL_TUNER_PLUGIN": "r2cc"}


def lines(job: Job, words: str) -> list[str]:
  """Of rank 0, which logs the switches."""
  return [line for line in job.logs(0).splitlines() if words in line]


def settle(job: Job, words: str | None, count: int) -> bool:
  """Small calls until there are so many lines with `words`; without any, all the calls. False: they did not come."""
  for _ in range(SETTLE_ROUNDS):
    job.ask({"do": "measure", "operation": "all_reduce", "items": [[SETTLE_BYTES, 0, SETTLE_CALLS]]}, 60.0)
    if words is not None and len(lines(job, words)) >= count:
      return True
  return words is None


def _table(context: Context, rows: list[Sequence[str]]) -> None:
  head = ("nodes", "rails", "lost", "MiB", "Balance ms", "seat ms", "seat / Balance (95 %)", "expected")
  widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
  for row in [head, *rows]:
    context.results.print_line("  " + "  ".join(text.rjust(width) for text, width in zip(row, widths)))


def _measured(context: Context, stage: Stage, jobs: dict[str, Job], items: Sequence[Item], pairs: int) -> list[dict[str, Any]]:
  """By size."""
  in_turns(context, stage, jobs, [(size, 0, 1) for size, _, _ in items], range(1))
  found = in_turns(context, stage, jobs, items, range(pairs))
  result = []
  for index, (size, _, _) in enumerate(items):
    means = {name: [timed.mean_s for timed in times[index]] for name, times in found.items()}
    result.append({"size_bytes": context.setup.size(size) if size >= MIB else size,
                   **{f"{name}_ms": round(1e3 * (figures.percentile(seconds, 0.5) or 0.0), 4) for name, seconds in means.items()},
                   "seat_over_balance": figures.ratio_fields(means[SEAT], means[BALANCE])})
  return result


def losses(nodes: int, rails: int, quick: bool, per_node: int = 1) -> list[tuple[str, list[RailId], bool]]:
  """Name, rails that are lost, and whether a seat is expected. Node 1 has no free seat where the number of nodes is even
  and above two; a quarter lost gains less than 3 % with four and five nodes of one GPU. Pure."""
  half = [RailId(1, rail) for rail in range(rails // 2)]
  found = [(f"{rails // 2} of {rails} of a node", half, nodes > 2)]
  if not quick:
    found.append((f"1 of {rails} of a node", [RailId(1, 0)], nodes == 3 or nodes > 5 or (per_node > 1 and nodes > 2)))
    if nodes >= 8:
      found.append((f"{rails // 2} of {rails} of two nodes", half + [RailId(4, rail) for rail in range(rails // 2)], True))
  return found


def _world(context: Context, case: str, world: tuple[int, str], struck: Sequence[tuple[str, list[RailId], bool]], items: Sequence[Item],
           pairs: int, daemons: bool, per_node: int = 1) -> list[Sequence[str]]:
  """One cluster, each fault and its repair; rows of the table."""
  setup, rows, (nodes, rate) = context.setup, [], world
  with Stage(setup, f"{case}{nodes}", nodes, rate, daemons) as stage:
    jobs = {SEAT: stage.begin_job(SEAT, R2CC, per_node, environment(context, EVERY)), BALANCE: stage.begin_job(BALANCE, R2CC, per_node)}
    for job in jobs.values():
      job.wait_ready()
    common = {"nodes": nodes, "ranks": nodes * per_node, "rails": setup.rails, "rate": rate, "daemon": daemons}
    for name, lost, is_expected in struck:
      there = len(lines(jobs[SEAT], THERE))
      for rail in lost:
        stage.lab.cut(rail)
      for job in jobs.values():
        job.stay(SETTLE_S, may_stand_still=True)
      if not settle(jobs[SEAT], THERE if is_expected else None, there + 1):
        raise JobBroken(f"{name} lost: no switch to the tree; {jobs[SEAT].last_lines()}")
      words = lines(jobs[SEAT], THERE)[there:]
      if words and not is_expected:
        raise JobBroken(f"{name} lost, {nodes} nodes: a switch to the tree, which gains nothing there: {words[-1][-250:]}")
      # Rank 0 reports it, to the daemon of its node.
      if daemons and words and not (known := [way for way in stage.ways(0) if way["way"] == "tree"]):
        raise JobBroken(f"{name} lost: r2ccctl jobs does not have the tree: {stage.ways(0)}")
      if daemons and words:
        context.results.add(case, f"{name} lost, r2ccctl jobs", **common, ways=known)
      expected = re.search(r"expected (\d\.\d+)", words[-1]) if words else None
      for result in _measured(context, stage, jobs, items, pairs):
        ratio = result["seat_over_balance"]
        context.results.add(case, f"{name} lost", **common, **result, expected_for_large=expected and float(expected.group(1)))
        rows.append((str(nodes), rate, name, str(result["size_bytes"] // MIB), f"{result['balance_ms']:.1f}", f"{result['seat_ms']:.1f}",
                     f"{ratio['ratio']} ({ratio['low']} to {ratio['high']})", expected.group(1) if expected else "declines"))
      checked = check_data(context, jobs[SEAT])
      context.results.add(case, f"{name} lost, data", **common, line=words[-1][-250:] if words else "", **checked)
      if checked["wrong"]:
        raise JobBroken(f"{name} lost, {nodes} nodes: {checked['wrong']} wrong elements")
      for rail in lost:
        stage.lab.heal(rail)
      for job in jobs.values():
        job.stay(SETTLE_S, may_stand_still=True)
      if words and not settle(jobs[SEAT], BACK, len(lines(jobs[SEAT], THERE))):
        raise JobBroken(f"{name} repaired: no switch back; {jobs[SEAT].last_lines()}")
    for name, job in jobs.items():
      context.results.add(case, f"{name} exit", **common, **stage.end_job(job))
  return rows


def worlds(nodes_asked: int | None) -> Sequence[tuple[int, str]]:
  """Of the case `seat`. Pure."""
  return WORLDS if nodes_asked is None else ((nodes_asked, GIVEN_RATE),)


def seat(context: Context, case: str, daemons: bool = False) -> None:
  """With the interposer over without it, on the rails that are left; every element is checked while the seat is in use."""
  context.end_bench()
  setup, rows = context.setup, []
  items, pairs = (QUICK_ITEMS, QUICK_PAIRS) if setup.quick else (ITEMS, PAIRS)
  for nodes, rate in worlds(setup.nodes_asked):
    rows += _world(context, case, (nodes, rate), losses(nodes, setup.rails, setup.quick), items, pairs, daemons)
  _table(context, rows)


def counts(context: Context, case: str, daemons: bool = False) -> None:
  """Two, three, five and seven nodes, one of which loses half of its rails: two decline, the others find the seat."""
  context.end_bench()
  rows: list[Sequence[str]] = []
  for nodes in OTHER_COUNTS:
    struck = losses(nodes, context.setup.rails, quick=True)
    rows += _world(context, case, (nodes, GIVEN_RATE), struck, COUNT_ITEMS, COUNT_PAIRS, daemons)
  _table(context, rows)


def two_gpus(context: Context, case: str, daemons: bool = False) -> None:
  """Four nodes of two ranks each; ranks of one node reach each other inside it."""
  context.end_bench()
  setup = context.setup
  if setup.gpus < PER_PAIR:
    raise ValueError(f"nodes of {PER_PAIR} GPUs need as many cards, and there are {setup.gpus}")
  rows: list[Sequence[str]] = []
  items, pairs = (QUICK_ITEMS, QUICK_PAIRS) if setup.quick else (ITEMS, PAIRS)
  for world in PAIR_WORLDS[:1] if setup.quick else PAIR_WORLDS:
    struck = losses(world[0], setup.rails, setup.quick, PER_PAIR)
    rows += _world(context, case, world, struck, items, pairs, daemons, PER_PAIR)
  _table(context, rows)


def mixed(context: Context, case: str, daemons: bool = False) -> None:
  """One rank without libr2cc-nccl.so, then one with another interval: the job goes on as NCCL alone, and one line names that rank."""
  context.end_bench()
  nodes, usual = 4, environment(context, EVERY)
  without = {} if context.setup.nccl is None else {"LD_PRELOAD": str(context.setup.nccl)}
  with Stage(context.setup, case, nodes, GIVEN_RATE, daemons) as stage:
    for variant, rank, other, words in (("without the library", 0, without, "stays NCCL's own: the process that made its ID"),
                                        ("without the library", 2, without, "stays NCCL's own: rank 2 has no libr2cc-nccl.so"),
                                        ("another interval", 3, environment(context, EVERY + 1), "stays NCCL's own: rank 3 has another")):
      job = stage.start_job(SEAT, R2CC, environment=usual, others={rank: other})
      lost = [RailId(1, rail) for rail in range(context.setup.rails // 2)]
      for rail in lost:
        stage.lab.cut(rail)
      job.stay(SETTLE_S, may_stand_still=True)
      begin_s = time.monotonic()
      settle(job, None, 0)
      seconds = time.monotonic() - begin_s
      output = [line for one in range(nodes) for line in job.logs(one).splitlines() if "R2CC: AllReduce of communicator" in line]
      checked = check_data(context, job)
      for rail in lost:
        stage.lab.heal(rail)
      context.results.add(case, f"{variant}: rank {rank}", nodes=nodes, rate=GIVEN_RATE, calls=SETTLE_ROUNDS * SETTLE_CALLS,
                          seconds=round(seconds, 2), lines=[line[-200:] for line in output], **checked)
      named = [line for line in output if words in line]
      if not named or checked["wrong"] or any(THERE in line for line in output):
        raise JobBroken(f"{variant}, rank {rank}: {output}, {checked['wrong']} wrong elements")
      context.results.add(case, f"{variant}: rank {rank} exit", **stage.end_job(job))


def audit(context: Context, case: str, daemons: bool = False) -> None:
  """LD_AUDIT instead of LD_PRELOAD, before a communicator of an NCCL that the program opens; PyTorch's own are idle meanwhile."""
  context.end_bench()
  nodes = 4
  with Stage(context.setup, case, nodes, GIVEN_RATE, daemons) as stage:
    jobs = {SEAT: stage.begin_job(SEAT, R2CC, environment=environment(context, EVERY, "LD_AUDIT")), BALANCE: stage.begin_job(BALANCE, R2CC)}
    for job in jobs.values():
      job.wait_ready()
    wrong, means = 0, {}

    def reduce(name: str, size_bytes: int, count: int) -> float:
      nonlocal wrong
      answers = jobs[name].ask({"do": "reduce_opened", "size_bytes": size_bytes, "count": count}, 60.0)
      wrong += sum(answer["wrong"] for answer in answers)
      return max(answer["mean_s"] for answer in answers)

    def settle_opened(words: str) -> None:
      for _ in range(SETTLE_ROUNDS):
        reduce(SEAT, SETTLE_BYTES, SETTLE_CALLS)
        if lines(jobs[SEAT], words):
          return
      raise JobBroken(f"no line '{words}'; {jobs[SEAT].last_lines()}")

    for name in jobs:
      reduce(name, 256 * MIB, 1)
    if lines(jobs[SEAT], THERE):
      raise JobBroken("a switch to the tree before a rail was lost")
    lost = [RailId(1, rail) for rail in range(context.setup.rails // 2)]
    for rail in lost:
      stage.lab.cut(rail)
    for job in jobs.values():
      job.stay(SETTLE_S, may_stand_still=True)
    settle_opened(THERE)
    for name in jobs:
      reduce(name, 256 * MIB, 1)
      means[name] = reduce(name, 256 * MIB, 4)
    for rail in lost:
      stage.lab.heal(rail)
    jobs[SEAT].stay(SETTLE_S, may_stand_still=True)
    settle_opened(BACK)
    reduce(SEAT, 256 * MIB, 1)
    ratio = means[SEAT] / means[BALANCE]
    context.results.add(case, "opened by dlopen", nodes=nodes, rate=GIVEN_RATE, wrong=wrong, seat_over_balance=round(ratio, 4),
                        line=lines(jobs[SEAT], THERE)[-1][-250:])
    context.results.print_line(f"  {case}: 256 MiB, half of a node lost: {ratio:.3f} of Balance; there and back; {wrong} wrong")
    if wrong:
      raise JobBroken(f"{wrong} wrong elements")
    for name, job in jobs.items():
      context.results.add(case, f"{name} exit", **stage.end_job(job))


def healthy(context: Context, case: str, daemons: bool = False) -> None:
  """What the interposer costs while all rails are there, and how far two jobs without it differ."""
  context.end_bench()
  setup = context.setup
  lives, pairs = (QUICK_HEALTHY_LIVES, QUICK_LIFE_PAIRS) if setup.quick else (HEALTHY_LIVES, LIFE_PAIRS)
  environments = {SEAT: environment(context, 256), BALANCE: None, AGAIN: None}
  found: dict[str, list[list[float]]] = {name: [[] for _ in HEALTHY_ITEMS] for name in environments}
  with Stage(setup, case, 4, setup.rate, daemons) as stage:
    for life in range(lives):
      jobs = {name: stage.begin_job(name, R2CC, environment=more) for name, more in environments.items()}
      for job in jobs.values():
        job.wait_ready()
      in_turns(context, stage, jobs, [(size, 0, 1) for size, _, _ in HEALTHY_ITEMS], range(1))
      for name, times in in_turns(context, stage, jobs, HEALTHY_ITEMS, range(life * pairs, (life + 1) * pairs)).items():
        for index, more in enumerate(times):
          found[name][index] += [timed.mean_s for timed in more]
      for name, job in jobs.items():
        context.results.add(case, f"{name} exit", life=life, **stage.end_job(job))
      setup.print_line(f"  life {life + 1} of {lives} is over")
  highest, noise = 0.0, 0.0
  for index, (size, _, _) in enumerate(HEALTHY_ITEMS):
    seconds = {name: times[index] for name, times in found.items()}
    on_off, chance = (figures.ratio_fields(seconds[name], seconds[BALANCE]) for name in (SEAT, AGAIN))
    size_bytes = setup.size(size) if size >= MIB else size
    context.results.add(case, "on over off", nodes=4, rate=setup.rate or "none", daemon=daemons, size_bytes=size_bytes, lives=lives,
                        **{f"{name}_ms": round(1e3 * (figures.percentile(times, 0.5) or 0.0), 4) for name, times in seconds.items()},
                        on_over_off=on_off, off_again_over_off=chance)
    context.results.print_line(f"  {size_bytes:10d} B  on over off {on_off['ratio']} ({on_off['low']} to {on_off['high']})"
                               f"  off over off {chance['ratio']} ({chance['low']} to {chance['high']})")
    highest, noise = max(highest, on_off["high"]), max(noise, chance["high"])
  context.results.print_line(f"  {case}: {lives * pairs} pairs; highest upper bound of all sizes: on over off {highest}, "
                             f"off over off {noise}")


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
      before = len(lines(job, words))
      for rail in lost:
        act(rail)
      waited = 0.0
      while len(lines(job, words)) < before + EAGER_COMMUNICATORS:
        job.stay(0.2)
        waited += 0.2
        if waited > SWITCH_S:
          raise JobBroken(f"switch {done + 1} has not come after {waited:.0f} s; {job.last_lines()}")
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
