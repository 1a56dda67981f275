"""Tensor-parallel decoding: what a token costs, healthy, at the moment of a fault, and in the steady degraded state."""

import statistics
from typing import Any

from testing.lab.lab import RailId
from tests.gpu import figures
from tests.gpu.bench import Context
from tests.gpu.figures import Row
from tests.gpu.job import Job
from tests.gpu.placement import R2CC, SOCKET
from tests.gpu.stage import Stage

ROUNDS, QUICK_ROUNDS = 5, 2
ROUND_S, QUICK_ROUND_S = 4.0, 1.5
SETTLE_S = 0.7
FAULT_WINDOW_NS = 1_000_000_000
SEED, BATCH = 1, 8


def _times_ms(rows: list[Row]) -> list[float]:
  return [row.took_ns / 1e6 for row in rows]


def _window(context: Context, job: Job) -> list[Row]:
  """Tokens of some seconds in which nothing changes."""
  job.stay(SETTLE_S)
  begin_ns, end_ns = job.stay(QUICK_ROUND_S if context.setup.quick else ROUND_S)
  return figures.within(job.rows, begin_ns, end_ns)


def _fields(name: str, rows: list[Row]) -> dict[str, Any]:
  times = _times_ms(rows)
  result = {f"{name}_p{round(100 * share)}_ms": figures.rounded(figures.percentile(times, share)) for share in (0.5, 0.99)}
  return result | {f"{name}_tokens": len(times)}


def _run(context: Context, case: str, stage: Stage, variant: str, job: Job) -> list[str]:
  """The digests of all whole sequences."""
  setup = context.setup
  job.begin({"do": "decode", "seed": SEED, "batch": BATCH, "tiny": setup.is_tiny})
  job.wait_rows(64, 60.0)
  healthy, degraded, worst_ms, ratios = [], [], [], {"p50": [], "p99": []}
  for number in range(QUICK_ROUNDS if setup.quick else ROUNDS):
    before = _window(context, job)
    healthy += before
    if variant != "r2cc":
      continue
    rail = RailId(number % stage.nodes, (number + 1) % setup.rails)
    fault_ns = stage.lab.cut(rail)
    after = _window(context, job)
    degraded += after
    worst_ms.append(max(_times_ms([row for row in job.rows if fault_ns < row.end_ns < fault_ns + FAULT_WINDOW_NS]), default=None))
    for name, share in (("p50", 0.5), ("p99", 0.99)):
      ratios[name].append(figures.percentile(_times_ms(after), share) / figures.percentile(_times_ms(before), share))
    stage.lab.heal(rail)
    job.stay(SETTLE_S)
  answers = job.stop_loop()
  result = {"nodes": stage.nodes, "rate": stage.rate or "none", "batch": BATCH, **_fields("healthy", healthy)}
  if degraded:
    result |= _fields("degraded", degraded)
    result |= {f"{name}_ratio": round(statistics.median(values), 4) for name, values in ratios.items()}
    result |= {"worst_token_of_each_fault_ms": [figures.rounded(value, 2) for value in worst_ms]}
  sequences = answers[0]["sequences"]
  agree = len({tuple(answer["sequences"]) for answer in answers}) == 1
  context.results.add(case, variant, **result, tokens=answers[0]["tokens"], whole_sequences=len(sequences), ranks_agree=agree,
                      tokens_identical=len(set(sequences)) <= 1, sequence=sequences[0] if sequences else None)
  return sequences


def inference(context: Context, case: str, daemons: bool = False) -> None:
  context.end_bench()
  with Stage(context.setup, case, context.setup.nodes, context.setup.rate, daemons) as stage:
    jobs = {"socket": stage.begin_job("socket", SOCKET), "r2cc": stage.begin_job("r2cc", R2CC)}
    for job in jobs.values():
      job.wait_ready()
    found = {name: _run(context, case, stage, name, job) for name, job in jobs.items()}
    first = [sequences[0] for sequences in found.values() if sequences]
    context.results.add(case, "compared", tokens_as_over_socket=len(set(first)) == 1 if len(first) == 2 else None)
    for name, job in jobs.items():
      context.results.add(case, f"{name} exit", **stage.end_job(job))
