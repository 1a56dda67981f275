"""CollNet by the agreement of libr2cc-nccl.so: NCCL's own choice while all rails are there, CollNet where the planner expects a gain, the
seat where that is as good, and back. Jobs with it and without it live at the same time and take turns."""

from typing import Any, Sequence

from testing.lab.lab import RailId
from tests.gpu import figures
from tests.gpu.bench import MIB, SETTLE_S, Context
from tests.gpu.case_collnet import check_data
from tests.gpu.case_healthy import Item, in_turns
from tests.gpu.case_seat import BACK, EVERY, GIVEN_RATE, THERE, environment, lines, settle
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.stage import Stage

NODES = 4
AGREED, RING, AGAIN = "agreed", "ring", "ring-again"
COLLNET = "uses CollNet since"
# The plugin logs it when CollNet runs.
PLAN = "R2CC: CollNet: from operation"
DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH", "R2CC_LOG": "info"}
# The rails' NICs state 10 Gbit/s each, whatever they are shaped to: so the user has to answer for the processors.
COLLNET_BYTES = 16 * MIB
HEALTHY_ITEMS: Sequence[Item] = ((8192, 10, 100), (MIB, 5, 50), (16 * MIB, 2, 8), (64 * MIB, 1, 4), (256 * MIB, 1, 2))
ITEMS: Sequence[Item] = ((16 * MIB, 0, 8), (64 * MIB, 0, 5), (256 * MIB, 0, 3))
HEALTHY_PAIRS, QUICK_HEALTHY_PAIRS, PAIRS, QUICK_PAIRS = 20, 8, 5, 3


def _measured(context: Context, stage: Stage, jobs: dict[str, Job], items: Sequence[Item], pairs: int, common: dict[str, Any],
              case: str, variant: str) -> None:
  in_turns(context, stage, jobs, [(size, 0, 1) for size, _, _ in items], range(1))
  found = in_turns(context, stage, jobs, items, range(pairs))
  for index, (size, _, _) in enumerate(items):
    means = {name: [timed.mean_s for timed in times[index]] for name, times in found.items()}
    ratios = {name: figures.ratio_fields(seconds, means[RING]) for name, seconds in means.items() if name != RING}
    size_bytes = context.setup.size(size) if size >= MIB else size
    context.results.add(case, variant, **common, size_bytes=size_bytes,
                        **{f"{name}_ms": round(1e3 * (figures.percentile(seconds, 0.5) or 0.0), 4) for name, seconds in means.items()},
                        **{f"{name}_over_ring": ratio for name, ratio in ratios.items()})
    words = "  ".join(f"{name} over ring {ratio['ratio']} ({ratio['low']} to {ratio['high']})" for name, ratio in ratios.items())
    context.results.print_line(f"  {variant}: {size_bytes:10d} B  {words}")


def agreed(context: Context, case: str, daemons: bool = False) -> None:
  """Healthy; a quarter of one node lost, where CollNet gains; half lost, where the seat does."""
  context.end_bench()
  setup = context.setup
  by_agreement = {"NCCL_COLLNET_ENABLE": "1", "R2CC_COLLNET_MIN_BYTES": str(COLLNET_BYTES)}
  # What --env asks for comes last: NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH,TUNING has NCCL's choice for each call.
  environments = {AGREED: environment(context, EVERY) | by_agreement | DEBUG | setup.environment,
                  RING: {"NCCL_COLLNET_ENABLE": "0"}, AGAIN: {"NCCL_COLLNET_ENABLE": "0"}}
  common = {"nodes": NODES, "rails": setup.rails, "rate": GIVEN_RATE, "daemon": daemons}
  with Stage(setup, case, NODES, GIVEN_RATE, daemons) as stage:
    jobs = {name: stage.begin_job(name, R2CC, environment=more) for name, more in environments.items()}
    for job in jobs.values():
      job.wait_ready()
    _measured(context, stage, jobs, HEALTHY_ITEMS, QUICK_HEALTHY_PAIRS if setup.quick else HEALTHY_PAIRS, common, case, "healthy")
    context.results.add(case, f"{AGAIN} exit", **common, **stage.end_job(jobs.pop(AGAIN)))
    for name, lost, words in ((f"1 of {setup.rails} lost", [RailId(1, 0)], COLLNET),
                              (f"{setup.rails // 2} of {setup.rails} lost", [RailId(1, rail) for rail in range(setup.rails // 2)], THERE)):
      before = {line: len(lines(jobs[AGREED], line)) for line in (words, BACK, PLAN)}
      for rail in lost:
        stage.lab.cut(rail)
      for job in jobs.values():
        job.stay(SETTLE_S, may_stand_still=True)
      if not settle(jobs[AGREED], words, before[words] + 1):
        raise JobBroken(f"{name}: no line '{words}'; {jobs[AGREED].last_lines()}")
      _measured(context, stage, jobs, ITEMS, QUICK_PAIRS if setup.quick else PAIRS, common, case, name)
      plans = lines(jobs[AGREED], PLAN)[before[PLAN]:]
      if bool(plans) != (words == COLLNET):
        raise JobBroken(f"{name}: CollNet {'runs' if plans else 'does not run'}: {plans}; {jobs[AGREED].last_lines()}")
      checked = check_data(context, jobs[AGREED])
      context.results.add(case, f"{name}, data", **common, line=lines(jobs[AGREED], words)[-1][-250:],
                          plan=plans[-1][-150:] if plans else "", **checked)
      if checked["wrong"]:
        raise JobBroken(f"{name}: {checked['wrong']} wrong elements")
      for rail in lost:
        stage.lab.heal(rail)
      for job in jobs.values():
        job.stay(SETTLE_S, may_stand_still=True)
      if not settle(jobs[AGREED], BACK, before[BACK] + 1):
        raise JobBroken(f"{name}, repaired: no switch back; {jobs[AGREED].last_lines()}")
    for name, job in jobs.items():
      context.results.add(case, f"{name} exit", **common, **stage.end_job(job))
