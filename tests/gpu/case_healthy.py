"""R2CC against NCCL Socket and its tunings: all jobs live at the same time and take turns in short blocks."""

from typing import Any

from tests.bench import paired
from tests.gpu import figures
from tests.gpu.bench import MIB, Context
from tests.gpu.job import Job
from tests.gpu.placement import R2CC, SOCKET, SOCKET_TUNINGS, Network
from tests.gpu.stage import Stage

SMALL_BYTES = (8, 32, 128, 512, 2048, 8192, 32768, 131072, 262144, 524288, MIB)
SMALL_ITERATIONS = 50
# Bytes, iterations of a block.
LARGE = ((16 * MIB, 8), (64 * MIB, 4), (256 * MIB, 2))
# Small sizes: which processors a job's threads come to sit on decides for its whole life, by a fifth of the time. So several lives, and a
# second job of Socket beside the first: what one gives over the other is chance.
LIVES, SMALL_PAIRS, LARGE_PAIRS, TRIALS = 6, 8, 12, 3
QUICK_LIVES, QUICK_SMALL_PAIRS, QUICK_LARGE_PAIRS, QUICK_TRIALS = 1, 8, 3, 1
BLOCK_S = 60.0
SOCKET_AGAIN = "socket-again"


def _block(context: Context, job: Job, items: list[list[int]], operation: str = "all_reduce") -> list[float]:
  """Seconds of one operation of each size, on the rank that took longest."""
  sized = [[context.setup.size(size) if size >= MIB else size, count] for size, count in items]
  answers = job.ask({"do": "measure", "operation": operation, "items": sized}, BLOCK_S)
  return [max(times) for times in zip(*(answer["seconds"] for answer in answers))]


def _in_turns(context: Context, jobs: dict[str, Job], items: list[list[int]], pairs: int) -> dict[str, list[list[float]]]:
  """By job: one list of seconds for each size."""
  found: dict[str, list[list[float]]] = {name: [[] for _ in items] for name in jobs}
  for pair in range(pairs):
    order = list(jobs.items()) if paired.ours_first(pair) else list(reversed(jobs.items()))
    for name, job in order:
      for size, seconds in enumerate(_block(context, job, items)):
        found[name][size].append(seconds)
  return found


def _compare(context: Context, case: str, variant: str, items: list[list[int]], found: dict[str, list[list[float]]], common: dict[str, Any],
             world: int, large: bool) -> None:
  for index, (size, count) in enumerate(items):
    ours = found["r2cc"][index]
    said = common | {"size_bytes": context.setup.size(size) if size >= MIB else size, "iterations": count}
    for name, times in found.items():
      seconds = figures.percentile(times[index], 0.5) or 0.0
      said[f"{name}_us"] = round(1e6 * seconds, 2)
      if large:
        said[f"{name}_busbw_gbps"] = round(figures.busbw_gbps("all_reduce", said["size_bytes"], world, seconds), 3)
      if name == SOCKET_AGAIN:
        said[f"{name}_over_socket"] = figures.ratio_words(times[index], found["socket"][index])
      elif name != "r2cc":
        said[f"time_over_{name}"] = figures.ratio_words(ours, times[index])
        if large:
          said[f"busbw_over_{name}"] = figures.ratio_words(times[index], ours)
    context.results.add(case, variant, **said)


def _begin(stage: Stage, networks: dict[str, Network]) -> dict[str, Job]:
  jobs = {name: stage.begin_job(name, network) for name, network in networks.items()}
  for job in jobs.values():
    job.wait_ready()
  return jobs


def _touch(context: Context, jobs: dict[str, Job], items: list[list[int]]) -> None:
  """Each size once untimed: connections and buffers are made."""
  _in_turns(context, jobs, [[size, 5] for size, _ in items], 1)


def _end(context: Context, stage: Stage, jobs: dict[str, Job], case: str, shaped: str) -> None:
  for name, job in jobs.items():
    context.results.add(case, f"{shaped} {name} exit", **stage.end_job(job))


def _run(context: Context, case: str, rate: str | None, shaped: str) -> None:
  context.end_bench()
  setup, results = context.setup, context.results
  with Stage(setup, f"{case}-{shaped}", setup.nodes, rate) as stage:
    networks = {network.name: network for network in [R2CC, *(Network("socket", *tuning) for tuning in SOCKET_TUNINGS)]}
    if setup.device == "cpu":
      networks = {network.name: network for network in (R2CC, SOCKET)}
    jobs = _begin(stage, networks)
    setup.say(f"  {len(jobs)} jobs of {setup.nodes} ranks ready")
    common = {"nodes": setup.nodes, "rails": setup.rails, "rate": rate or "none"}
    trials = _in_turns(context, {name: job for name, job in jobs.items() if name.startswith("socket")}, [[64 * MIB, 4]],
                       QUICK_TRIALS if setup.quick else TRIALS)
    medians = {name: figures.percentile(times[0], 0.5) or 0.0 for name, times in trials.items()}
    best = min(medians, key=lambda name: medians[name])
    results.add(case, f"{shaped} socket tunings", **common, best=best,
                busbw_gbps={name: round(figures.busbw_gbps("all_reduce", setup.size(64 * MIB), setup.nodes, seconds), 3)
                            for name, seconds in medians.items()})
    for name in [name for name in jobs if name.startswith("socket") and name not in ("socket", best)]:
      stage.end_job(jobs.pop(name))
      del networks[name]
    small, large = [[size, SMALL_ITERATIONS] for size in SMALL_BYTES], [list(item) for item in LARGE]
    _touch(context, jobs, small + large)
    found = _in_turns(context, jobs, large, QUICK_LARGE_PAIRS if setup.quick else LARGE_PAIRS)
    _compare(context, case, f"{shaped} large", large, found, common, setup.nodes, True)
    networks[SOCKET_AGAIN] = SOCKET
    found = {name: [[] for _ in small] for name in networks}
    for _ in range(QUICK_LIVES if setup.quick else LIVES):
      _end(context, stage, jobs, case, shaped)
      jobs = _begin(stage, networks)
      _touch(context, jobs, small)
      for name, times in _in_turns(context, jobs, small, QUICK_SMALL_PAIRS if setup.quick else SMALL_PAIRS).items():
        for size, more in enumerate(times):
          found[name][size] += more
    _compare(context, case, f"{shaped} small", small, found, common, setup.nodes, False)
    _end(context, stage, jobs, case, shaped)


def healthy(context: Context, case: str, daemons: bool = False) -> None:
  del daemons
  _run(context, case, context.setup.rate, "shaped" if context.setup.rate else "unshaped")


def unshaped(context: Context, case: str, daemons: bool = False) -> None:
  del daemons
  _run(context, case, None, "unshaped")
