"""Data-parallel training with a node that loses half of its rails and gets them back: the seat over Balance, and the loss curves."""

import dataclasses
from typing import Any, Sequence

from testing.lab.lab import RailId
from tests.gpu import figures
from tests.gpu.bench import Context
from tests.gpu.case_seat import BACK, THERE, environment, lines
from tests.gpu.figures import Row
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.stage import Stage

NODES, RATE = 4, "2gbit"  # the rails are the limit and not the processors
STEPS, CUT_AT, REPAIR_AT = 34, 6, 22
STEP_S, STRIKE_SHARE = 60.0, 0.5
SEQUENCES = 2
# A step has some eight buckets, so there is an agreement in almost each.
BUCKET_MIB, EVERY = 64, 8
# What rounding does to a loss grows from step to step, from a start that is chance.
NOISE_FACTOR = 3.0


@dataclasses.dataclass(frozen=True)
class _Run:
  """What one run has found."""
  rows: list[Row]
  losses: list[float]
  there: int | None  # the first step after the switch; None: there was none
  back: int | None

  def median_ms(self, begin: int, end: int) -> float:
    return figures.median_ms(self.rows[begin:end]) or 0.0


def _run(stage: Stage, job: Job, shards: Sequence[int], has_faults: bool) -> _Run:
  """`shards`: whose tokens each rank has. Half of node 1's rails are lost in the middle of a step."""
  lost = [RailId(1, rail) for rail in range(stage.setup.rails // 2)]
  acts = {CUT_AT: stage.lab.cut, REPAIR_AT: stage.lab.heal} if has_faults else {}
  before = {words: len(lines(job, words)) for words in (THERE, BACK)}
  seen: dict[str, int] = {}
  job.begin({"do": "train", "seed": 0, "steps": STEPS, "sequences": SEQUENCES, "rounds": 1, "tiny": stage.setup.is_tiny,
             "shards": list(shards), "bucket_mib": BUCKET_MIB})
  for step in range(1, STEPS + 1):
    job.wait_rows(step - job.done_count(), STEP_S)
    for words, count in before.items():
      if words not in seen and len(lines(job, words)) > count:
        seen[words] = step + 1
    if step in acts:
      job.stay(STRIKE_SHARE * (figures.median_ms(job.rows[:CUT_AT]) or 0.0) / 1e3)
      for rail in lost:
        acts[step](rail)
  answers = job.finish(STEP_S)
  return _Run(job.rows, figures.mean_losses([answer["losses"] for answer in answers]), seen.get(THERE), seen.get(BACK))


def training(context: Context, case: str, daemons: bool = False) -> None:
  """Two undisturbed runs whose ranks have each other's tokens show what another order of additions does to the losses."""
  context.end_bench()
  natural, other = list(range(NODES)), [0, 2, 1, 3]
  with Stage(context.setup, case, NODES, RATE, daemons) as stage:
    balance = stage.begin_job("balance", R2CC)
    seated = stage.begin_job("seat", R2CC, environment=environment(context, EVERY))
    for job in (balance, seated):
      job.wait_ready()
    runs = {"undisturbed": _run(stage, balance, natural, False), "balance": _run(stage, balance, natural, True),
            "seat": _run(stage, seated, natural, True), "other order": _run(stage, balance, other, False)}
    seat = runs["seat"]
    if seat.there is None or seat.there >= REPAIR_AT:
      raise JobBroken(f"no switch to the tree by step {REPAIR_AT}; {seated.last_lines()}")
    if seat.back is None:
      raise JobBroken(f"no switch back by the end; {seated.last_lines()}")
    nearest, noise, within = figures.within_noise(seat.losses, [runs["undisturbed"].losses, runs["other order"].losses], NOISE_FACTOR)
    found: dict[str, Any] = {}
    for name in ("balance", "seat"):
      found |= {f"{name}_healthy_ms": figures.rounded(runs[name].median_ms(1, CUT_AT)),
                f"{name}_lost_ms": figures.rounded(runs[name].median_ms(seat.there, REPAIR_AT)),
                f"{name}_longest_ms": figures.rounded(max(row.took_ns for row in runs[name].rows) / 1e6)}
    ratio = found["seat_lost_ms"] / found["balance_lost_ms"]
    identical = runs["balance"].losses == runs["undisturbed"].losses
    context.results.add(case, "compared", nodes=NODES, rate=RATE, rails=stage.setup.rails, steps=STEPS, bucket_mib=BUCKET_MIB, **found,
                        seat_over_balance=figures.rounded(ratio), steps_to_seat=seat.there - CUT_AT, steps_back=seat.back - REPAIR_AT,
                        loss_nearest=nearest, loss_noise=noise, losses_within_noise=within, balance_losses_identical=identical,
                        first_loss=seat.losses[0], last_loss=seat.losses[-1])
    context.results.print_line(f"  {case}: a step after the loss: seat {found['seat_lost_ms']:.0f} ms over Balance "
                               f"{found['balance_lost_ms']:.0f} ms = {ratio:.3f}; there after {seat.there - CUT_AT} steps, back after "
                               f"{seat.back - REPAIR_AT}; losses differ from an undisturbed run's by {nearest:.2e}, "
                               f"two of these by {noise:.2e}: {'within' if within else 'NOT within'} the noise; "
                               f"Balance's {'identical' if identical else 'NOT identical'}")
    if not within:
      raise JobBroken(f"losses with the seat differ from an undisturbed run's by {nearest:.3e}, and these from each other by {noise:.3e}")
    if not identical:
      raise JobBroken("losses by Balance are not those of the undisturbed run to the bit")
    for name, job in (("balance", balance), ("seat", seated)):
      context.results.add(case, f"{name} exit", **stage.end_job(job))
