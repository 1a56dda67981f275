"""Data-parallel training of a small GPT: undisturbed, with faults, and a control that loses the same rails while its clock stands still."""

import math
from typing import Any, Callable

from testing.lab.lab import RailId
from tests.gpu import figures
from tests.gpu.bench import Context
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.stage import BACK_S, Stage

# Sequences of a batch for which a GPU has memory, all nodes that share it together.
SEQUENCES_MOST = 80
# Calibration ends where no more than this share of a step is exposed communication.
EXPOSED_MAX = 0.20
CALIBRATION_STEPS = 4
STEP_S = 60.0
# A fault strikes in the second half of a step: while gradients travel.
STRIKE_SHARE = 0.6
SETTLE_S = 60.0


class _Faults:
  """Three faults and a repair, as (step, what, how)."""

  def __init__(self, stage: Stage, steps: int):
    nodes, rails, lab = stage.nodes, stage.setup.rails, stage.lab
    one, two, three = RailId(1 % nodes, 1 % rails), RailId(2 % nodes, 2 % rails), RailId(3 % nodes, 3 % rails)
    at = figures.fault_steps(steps)
    self.events: list[tuple[int, str, Callable[[], int], RailId | None]] = [
        (at[0], f"cut {one}", lambda: lab.cut(one), None),
        (at[1], f"silence {two}", lambda: lab.blackhole(two), None),
        (at[2], f"repair {one}", lambda: lab.heal(one), one),
        (at[3], f"cut {three}", lambda: lab.cut(three), None),
    ]
    self._undo = [lambda: lab.heal(one), lambda: lab.unblackhole(two), lambda: lab.heal(three)]
    self.rails = [one, two, three]

  def undo(self) -> None:
    for undo in self._undo:
      undo()


def _strike(job: Job, faults: _Faults) -> None:
  """Each event in the middle of its step."""
  for step, _, act, _ in faults.events:
    job.wait_rows(step - job.done_count(), STEP_S * max(1, step))
    rows = job.rows
    usual_s = figures.median_ms(rows[-10:]) or 0.0
    job.stay(STRIKE_SHARE * usual_s / 1e3)
    act()


def _pause(job: Job, stage: Stage, faults: _Faults) -> None:
  """Each event at a step's boundary, while the job waits; what moves before it goes on is not counted."""
  for step, _, act, back in faults.events:
    job.wait_event("paused", STEP_S * max(1, step))
    act()

    def settle() -> None:
      job.send({"do": "settle"})
      job.wait_event("settled", SETTLE_S)

    settle()
    if back is not None and stage.wait_back(job, [back], settle) is None and stage.setup.device == "cuda":
      raise JobBroken(f"{back} carried nothing within {BACK_S:g} s of its repair")
    job.send({"do": "resume"})


def _one(context: Context, stage: Stage, job: Job, variant: str, seed: int, batches: tuple[int, int]) -> dict[str, Any]:
  """One run; what it found, with its rows."""
  setup = context.setup
  faults = _Faults(stage, setup.steps)
  command = {"do": "train", "seed": seed, "steps": setup.steps, "sequences": batches[0], "rounds": batches[1],
             "tiny": setup.is_tiny, "pauses": [step for step, _, _, _ in faults.events] if variant == "control" else []}
  job.begin(command)
  if variant == "faults":
    _strike(job, faults)
  elif variant == "control":
    _pause(job, stage, faults)
  answers = job.finish(STEP_S * setup.steps)
  rows = job.rows
  if variant != "none":
    faults.undo()
    ballast = {"do": "measure", "operation": "all_reduce", "items": [[setup.size(64 << 20), 0, 20]]}
    stage.wait_back(job, faults.rails, lambda: job.ask(ballast, SETTLE_S))
  tokens = answers[0]["tokens_per_step"]
  marks = [step for step, _, _, _ in faults.events]
  tempo = [{"steps": f"{begin}-{end - 1}", "tokens_per_s": round(tokens / seconds)} for begin, end in figures.phases(marks, setup.steps)
           if (seconds := figures.mean_s(rows[begin:end]))]
  found = {"seed": seed, "steps": len(rows), "tokens_per_step": tokens, "seconds": round(sum(row.took_ns for row in rows) / 1e9, 3),
           "median_step_ms": figures.rounded(figures.median_ms(rows)), "phases": tempo, "first_loss": answers[0]["first"],
           "last_loss": answers[0]["last"], "losses": figures.digest(word for answer in answers for word in answer["losses"]),
           "weights": figures.digest(answer["weights"] for answer in answers)}
  if variant != "none":
    found["events"] = [{"step": step, "what": what, "step_ms": round(rows[step].took_ns / 1e6, 2),
                        "next_ms": round(rows[step + 1].took_ns / 1e6, 2) if step + 1 < len(rows) else None}
                       for step, what, _, _ in faults.events]
  return found


def candidates(world: int, gpus: int) -> list[tuple[int, int]]:
  """What calibration tries: sequences of a rank's batch, and batches whose gradients are added up before they travel. Pure."""
  most = SEQUENCES_MOST // math.ceil(world / max(1, gpus))
  return [(most * 2 // 5, 1), (most * 4 // 5, 1), (most, 1), (most, 2), (most, 3)]


def _calibrate(context: Context, job: Job) -> tuple[int, int]:
  """A rank's sequences of a batch and batches of a step; prints the share of exposed communication."""
  setup = context.setup
  wanted = candidates(job.world, setup.gpus)
  if setup.is_tiny:
    wanted = [(8, 2)]
  if setup.sequences:
    wanted = [(setup.sequences, setup.rounds)]
  for sequences, rounds in wanted:
    answers = job.ask({"do": "calibrate", "seed": 0, "steps": CALIBRATION_STEPS, "sequences": sequences, "rounds": rounds,
                       "tiny": setup.is_tiny}, 300.0)
    with_s, without_s = (max(answer[name] for answer in answers) for name in ("with_sync_s", "without_sync_s"))
    share = figures.exposed_share(with_s, without_s)
    context.results.add("training", "calibration", sequences=sequences, rounds=rounds, tokens_per_step=answers[0]["tokens_per_step"],
                        parameters=answers[0]["parameters"], step_ms=round(1e3 * with_s, 2), step_without_sync_ms=round(1e3 * without_s, 2),
                        exposed_share=round(share, 4))
    if share <= EXPOSED_MAX:
      break
  return sequences, rounds


def training(context: Context, case: str, daemons: bool = False) -> None:
  context.end_bench()
  setup = context.setup
  nodes = max(4, setup.nodes)
  totals: dict[str, list[float]] = {"none": [], "faults": [], "control": []}
  with Stage(setup, case, nodes, setup.rate, daemons) as stage:
    debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "R2CC_LOG": "info"}
    job = stage.start_job("r2cc", R2CC, environment=debug)
    batches = _calibrate(context, job)
    for seed in range(setup.first_seed, setup.first_seed + setup.seeds):
      runs = {}
      for variant in ("none", "faults", "control") if seed % 2 == 0 else ("none", "control", "faults"):
        runs[variant] = _one(context, stage, job, variant, seed, batches)
        totals[variant].append(runs[variant]["seconds"])
        context.results.add(case, variant, nodes=nodes, gpus=setup.gpus, **runs[variant])
      same = {name: len({run[name] for run in runs.values()}) == 1 for name in ("losses", "weights")}
      faults_s, control_s, none_s = (runs[variant]["seconds"] for variant in ("faults", "control", "none"))
      hit_ms = {variant: sum(event["step_ms"] + (event["next_ms"] or 0) for event in runs[variant]["events"])
                for variant in ("faults", "control")}
      context.results.add(case, "compared", seed=seed, losses_identical=same["losses"], weights_identical=same["weights"],
                          overhead_percent=round(figures.overhead_percent(faults_s, control_s), 3),
                          overhead_of_hit_steps_percent=round((hit_ms["faults"] - hit_ms["control"]) / control_s / 10, 3),
                          cost_of_lost_rails_percent=round(figures.overhead_percent(control_s, none_s), 3))
    overheads = [figures.overhead_percent(ours, control) for ours, control in zip(totals["faults"], totals["control"])]
    how = "the same rails lost and repaired between the same steps, while the job is paused and may move something; not counted"
    context.results.add(case, "all seeds", control=how, overhead_percent=figures.spread(overheads),
                        overhead_of_sums_percent=round(figures.overhead_percent(sum(totals["faults"]), sum(totals["control"])), 3))
    context.results.add(case, "exit", **stage.end_job(job))
