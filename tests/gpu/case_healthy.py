"""R2CC against NCCL Socket and its tunings: all jobs live at the same time and take turns in short blocks."""

import dataclasses
import itertools
import random
from typing import Any, Iterable, Sequence

from tests.gpu import figures
from tests.gpu.bench import MIB, Context
from tests.gpu.job import Job
from tests.gpu.placement import R2CC, SOCKET, SOCKET_TUNINGS, Network
from tests.gpu.stage import Stage

# Bytes, first iterations, iterations of a block. All are warmed up, as by nccl-tests: a block begins when the other jobs have had their
# turn, and what it takes to wake up is a figure of its own.
TINY = tuple((size, 10, 50) for size in (8, 32, 128, 512, 2048, 8192))
SMALL = tuple((size, 10, 50) for size in (32768, 131072, 262144, 524288, MIB))
LARGE = ((16 * MIB, 5, 20), (64 * MIB, 2, 8), (256 * MIB, 1, 3))
Item = tuple[int, int, int]
# Where processors were dealt anew threads move there first; not counted.
SETTLE: tuple[Item, ...] = ((8, 0, 200),)
# Which processors a job's threads come to sit on decides by a fifth of the time, and for its whole life where they may stay; on rails
# without a rate large sizes differed by 8 % between two runs of a life each, though processors were dealt anew. So several lives; for small
# sizes a second job of Socket beside the first (what one gives over the other is chance); and so many pairs in all that all orders of the
# jobs come as often.
LIVES, QUICK_LIVES, TRIALS, QUICK_TRIALS = 4, 1, 3, 1
# Of a life.
TINY_PAIRS, SMALL_PAIRS, LARGE_PAIRS = 72, 24, 3
UNSHAPED_LARGE_PAIRS = 9  # quicker, and the more uneven
QUICK_SMALL_PAIRS, QUICK_LARGE_PAIRS = 8, 3
BLOCK_S = 60.0
SOCKET_AGAIN = "socket-again"


@dataclasses.dataclass(frozen=True)
class Timed:
  """One operation of one size in one block, on the rank that took longest, in seconds."""
  mean_s: float
  first_s: float | None


@dataclasses.dataclass(frozen=True)
class Group:
  """Sizes that are measured together."""
  name: str
  items: Sequence[Item]
  pairs: int  # of a life
  jobs: Sequence[str]  # that take part; R2CC's is the first


def block(context: Context, job: Job, items: Sequence[Item], operation: str = "all_reduce") -> list[Timed]:
  """By item."""
  sized = [[context.setup.size(size) if size >= MIB else size, first, count] for size, first, count in items]
  answers = job.ask({"do": "measure", "operation": operation, "items": sized}, BLOCK_S)
  return [Timed(max(answer["seconds"][index] for answer in answers),
                max(answer["first_seconds"][index] for answer in answers) if first else None) for index, (_, first, _) in enumerate(items)]


def turns(names: Iterable[str], pair: int) -> list[str]:
  """In which order jobs have their turn: in as many pairs as there are orders each comes as often after each. Pure."""
  orders = list(itertools.permutations(names))
  random.Random(0).shuffle(orders)
  return list(orders[pair % len(orders)])


def in_turns(context: Context, stage: Stage, jobs: dict[str, Job], items: Sequence[Item], pairs: range) -> dict[str, list[list[Timed]]]:
  """By job: one list for each size. `pairs`: their numbers."""
  found: dict[str, list[list[Timed]]] = {name: [[] for _ in items] for name in jobs}
  settle = SETTLE if stage.setup.cores else ()
  for pair in pairs:
    stage.deal_processors(pair)
    for name in turns(jobs, pair):
      for size, timed in enumerate(block(context, jobs[name], [*settle, *items])[len(settle):]):
        found[name][size].append(timed)
  return found


def _means(timed: Sequence[Timed]) -> list[float]:
  return [one.mean_s for one in timed]


def _firsts(timed: Sequence[Timed]) -> list[float]:
  return [one.first_s for one in timed if one.first_s is not None]


def _median_us(seconds: Sequence[float]) -> float:
  return round(1e6 * (figures.percentile(seconds, 0.5) or 0.0), 2)


def comparison(found: dict[str, list[Timed]]) -> dict[str, Any]:
  """Of one size, by job: medians, and what R2CC gives over the others. Pure."""
  result: dict[str, Any] = {}
  ours = found["r2cc"]
  for name, timed in found.items():
    result[f"{name}_us"] = _median_us(_means(timed))
    if firsts := _firsts(timed):
      result[f"{name}_first_us"] = _median_us(firsts)
    if name == SOCKET_AGAIN:
      result[f"{name}_over_socket"] = figures.ratio_fields(_means(timed), _means(found["socket"]))
    elif name != "r2cc":
      result[f"time_over_{name}"] = figures.ratio_fields(_means(ours), _means(timed))
      if firsts:
        result[f"first_time_over_{name}"] = figures.ratio_fields(_firsts(ours), firsts)
  return result


def by_life(ours: Sequence[Timed], others: Sequence[Timed], lives: int) -> list[float | None]:
  """The median ratio of speeds in each life. Pure."""
  ratios = [other.mean_s / our.mean_s for our, other in zip(ours, others)]
  pairs = len(ratios) // lives
  return [figures.rounded(figures.percentile(ratios[life * pairs:(life + 1) * pairs], 0.5), 3) for life in range(lives)]


def _bandwidths(found: dict[str, list[Timed]], size_bytes: int, world: int, lives: int) -> dict[str, Any]:
  result: dict[str, Any] = {}
  for name, timed in found.items():
    median_s = figures.percentile(_means(timed), 0.5) or 0.0
    result[f"{name}_busbw_gbps"] = round(figures.busbw_gbps("all_reduce", size_bytes, world, median_s), 3)
    if name != "r2cc":
      result[f"busbw_over_{name}"] = figures.ratio_fields(_means(timed), _means(found["r2cc"]))
      result[f"busbw_over_{name}_by_life"] = by_life(found["r2cc"], timed, lives)
  return result


def _compare(context: Context, case: str, shaped: str, group: Group, lives: int, found: dict[str, list[list[Timed]]],
             common: dict[str, Any]) -> None:
  for index, (size, _, count) in enumerate(group.items):
    of_size = {name: times[index] for name, times in found.items()}
    size_bytes = context.setup.size(size) if size >= MIB else size
    result = common | {"size_bytes": size_bytes, "iterations": count} | comparison(of_size)
    if size > MIB:
      result |= _bandwidths(of_size, size_bytes, context.setup.nodes, lives)
    context.results.add(case, f"{shaped} {group.name}", **result)


def _begin(stage: Stage, networks: dict[str, Network]) -> dict[str, Job]:
  jobs = {name: stage.begin_job(name, network) for name, network in networks.items()}
  for job in jobs.values():
    job.wait_ready()
  return jobs


def _touch(context: Context, stage: Stage, jobs: dict[str, Job], items: Sequence[Item]) -> None:
  """Some of each size, not counted: connections and buffers are made."""
  in_turns(context, stage, jobs, [(size, 0, 5) for size, _, _ in items], range(1))


def _best_tuning(context: Context, stage: Stage, case: str, shaped: str, common: dict[str, Any]) -> Network:
  """Of NCCL Socket's, by a few trials of jobs that end with them."""
  setup = context.setup
  tunings = [Network("socket", *tuning) for tuning in (SOCKET_TUNINGS if setup.device == "cuda" else SOCKET_TUNINGS[:1])]
  networks = {network.name: network for network in tunings}
  jobs = _begin(stage, networks)
  trials = in_turns(context, stage, jobs, [(64 * MIB, 0, 4)], range(QUICK_TRIALS if setup.quick else TRIALS))
  medians = {name: figures.percentile(_means(times[0]), 0.5) or 0.0 for name, times in trials.items()}
  best = min(medians, key=lambda name: medians[name])
  context.results.add(case, f"{shaped} socket tunings", **common, best=best,
                      busbw_gbps={name: round(figures.busbw_gbps("all_reduce", setup.size(64 * MIB), setup.nodes, seconds), 3)
                                  for name, seconds in medians.items()})
  for job in jobs.values():
    stage.end_job(job)
  return networks[best]


def _groups(quick: bool, has_rate: bool, compared: Sequence[str]) -> list[Group]:
  """In the order in which a life has them."""
  small = [*compared, SOCKET_AGAIN]
  if quick:
    return [Group("small", TINY + SMALL, QUICK_SMALL_PAIRS, small), Group("large", LARGE, QUICK_LARGE_PAIRS, compared)]
  return [Group("small", TINY, TINY_PAIRS, small), Group("small", SMALL, SMALL_PAIRS, small),
          Group("large", LARGE, LARGE_PAIRS if has_rate else UNSHAPED_LARGE_PAIRS, compared)]


def _run(context: Context, case: str, rate: str | None, shaped: str) -> None:
  context.end_bench()
  setup = context.setup
  common = {"nodes": setup.nodes, "rails": setup.rails, "rate": rate or "none"}
  lives = QUICK_LIVES if setup.quick else LIVES
  with Stage(setup, f"{case}-{shaped}", setup.nodes, rate) as stage:
    networks = {network.name: network for network in (R2CC, SOCKET, _best_tuning(context, stage, case, shaped, common))}
    groups = [group for group in _groups(setup.quick, rate is not None, list(networks)) if setup.sizes in ("all", group.name)]
    networks[SOCKET_AGAIN] = SOCKET
    found = [{name: [[] for _ in group.items] for name in group.jobs} for group in groups]
    for life in range(lives):
      jobs = _begin(stage, networks)
      for group, times_of in zip(groups, found):
        taking_part = {name: jobs[name] for name in group.jobs}
        _touch(context, stage, taking_part, group.items)
        pairs = range(life * group.pairs, (life + 1) * group.pairs)
        for name, times in in_turns(context, stage, taking_part, group.items, pairs).items():
          for size, more in enumerate(times):
            times_of[name][size] += more
      for name, job in jobs.items():
        context.results.add(case, f"{shaped} {name} exit", life=life, **stage.end_job(job))
      setup.print_line(f"  life {life + 1} of {lives} is over")
    for group, times_of in zip(groups, found):
      _compare(context, case, shaped, group, lives, times_of, common)


def healthy(context: Context, case: str, daemons: bool = False) -> None:
  del daemons
  _run(context, case, context.setup.rate, "shaped" if context.setup.rate else "unshaped")


def unshaped(context: Context, case: str, daemons: bool = False) -> None:
  del daemons
  _run(context, case, None, "unshaped")
