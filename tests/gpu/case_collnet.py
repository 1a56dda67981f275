"""The degraded AllReduce in stock NCCL: jobs with and without CollNet live at the same time and take turns, healthy and on fewer rails."""

from typing import Any

from testing.lab import all_reduce_times
from testing.lab.lab import RailId
from testing.lab.layout import rate_bits_per_s
from tests.bench import machine
from tests.gpu import figures
from tests.gpu.bench import MIB, SETTLE_S, Context
from tests.gpu.case_healthy import in_turns
from tests.gpu.job import Job
from tests.gpu.placement import R2CC, SOCKET
from tests.gpu.stage import Stage

# Bytes, first iterations, iterations of a block.
ITEMS, QUICK_ITEMS = ((4 * MIB, 0, 10), (16 * MIB, 0, 5), (64 * MIB, 0, 3), (256 * MIB, 0, 2)), ((64 * MIB, 0, 3), (256 * MIB, 0, 2))
PAIRS, QUICK_PAIRS = 5, 3
COLLNET, RING = "collnet", "ring"
_DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH", "R2CC_LOG": "info"}
ENVIRONMENT = {COLLNET: _DEBUG | {"NCCL_COLLNET_ENABLE": "1", "R2CC_COLLNET_MIN_BYTES": "1", "NCCL_TUNER_PLUGIN": "r2cc"},
               RING: {"NCCL_COLLNET_ENABLE": "0"}}
CHECK_S = 60.0
STARTS, QUICK_STARTS, START_BYTES = 60, 20, 4 * MIB
# Of a start: more than R2CC waits for a lost peer. What takes longer hangs.
START_S = 45.0


def _begin(stage: Stage) -> dict[str, Job]:
  jobs = {name: stage.begin_job(name, R2CC, environment=environment) for name, environment in ENVIRONMENT.items()}
  jobs["socket"] = stage.begin_job("socket", SOCKET)
  for job in jobs.values():
    job.wait_ready()
  return jobs


def check_data(context: Context, job: Job) -> dict[str, Any]:
  """Every element, and what was refused: neither may hold anything."""
  answers = job.ask({"do": "check", "operations": ["all_reduce"], "dtypes": ["float32", "float16", "bfloat16"],
                     "sizes": [context.setup.size(size) for size in (4 * MIB + 4096, 64 * MIB)], "iterations": 2}, CHECK_S)
  wrong = sum(sum(answer["wrong"].values()) for answer in answers)
  return {"checked": answers[0]["passed"], "wrong": wrong, "refused": answers[0]["refused"]}


def collnet(context: Context, case: str, daemons: bool = False) -> None:
  """Rails of the first node are lost one after the other; NCCL Socket, which a lost rail hangs, takes part only before that."""
  context.end_bench()
  setup = context.setup
  items = QUICK_ITEMS if setup.quick else ITEMS
  rail_bits_per_s = None if setup.rate is None else rate_bits_per_s(setup.rate)
  with Stage(setup, case, setup.nodes, setup.rate, daemons) as stage:
    jobs = _begin(stage)
    in_turns(context, stage, jobs, [(size, 0, 3) for size, _, _ in items], range(1))
    healthy: dict[int, list[float]] = {}
    for lost in dict.fromkeys((0, 1, setup.rails // 2)):
      if lost == 1:
        context.results.add(case, "socket exit", **stage.end_job(jobs.pop("socket")))
      for rail in range(lost):
        stage.lab.cut(RailId(0, rail))
      for job in jobs.values():
        job.stay(SETTLE_S, may_stand_still=True)
      in_turns(context, stage, jobs, [(size, 0, 2) for size, _, _ in items], range(1))
      before = machine.cpu_seconds()
      found = in_turns(context, stage, jobs, items, range(QUICK_PAIRS if setup.quick else PAIRS))
      common = {"nodes": setup.nodes, "rails": setup.rails, "rate": setup.rate or "none", "daemon": daemons, "lost_rails": lost,
                "busy_share": machine.busy_share(before, machine.cpu_seconds())}
      for index, (size, _, _) in enumerate(items):
        size_bytes = setup.size(size)
        means = {name: [timed.mean_s for timed in times[index]] for name, times in found.items()}
        medians = {name: figures.percentile(seconds, 0.5) or 0.0 for name, seconds in means.items()}
        healthy.setdefault(size, means[COLLNET])
        result = common | {"size_bytes": size_bytes} | {f"{name}_ms": round(1e3 * median_s, 3) for name, median_s in medians.items()}
        result |= {f"over_{name}": figures.ratio_fields(means[COLLNET], means[name]) for name in means if name != COLLNET}
        if lost:
          result["over_healthy"] = round(medians[COLLNET] / (figures.percentile(healthy[size], 0.5) or 1.0), 3)
        if rail_bits_per_s is not None:
          members = [rail_bits_per_s * (setup.rails - lost)] + [rail_bits_per_s * setup.rails] * (setup.nodes - 1)
          result["over_bound"] = round(medians[COLLNET] / all_reduce_times.all_reduce_bound_s(size_bytes, members), 3)
        context.results.add(case, f"{lost} of {setup.rails} lost", **result)
      context.results.add(case, f"{lost} of {setup.rails} lost, data", **common, **check_data(context, jobs[COLLNET]))
    lines = [line for rank in range(jobs[COLLNET].world) for line in jobs[COLLNET].logs(rank).splitlines() if "COLLNET" in line]
    context.results.add(case, "NCCL's log", collnet_lines=len(lines), example=lines[0][-160:] if lines else "")
    for name, job in jobs.items():
      context.results.add(case, f"{name} exit", **stage.end_job(job))


def starts(context: Context, case: str, daemons: bool = False) -> None:
  """Communicators from nothing to their first sum; at every tenth a rail of some node is lost while it is set up. A hang is an error."""
  context.end_bench()
  setup = context.setup
  count = QUICK_STARTS if setup.quick else STARTS
  with Stage(setup, case, setup.nodes, setup.rate, daemons) as stage:
    job = stage.begin_job(case, R2CC, environment=ENVIRONMENT[COLLNET])
    job.wait_ready()
    seconds, wrong = [], 0
    for number in range(count):
      rail = RailId(number // 10 % setup.nodes, number // 10 % setup.rails)
      lost = number % 10 == 9
      job.begin({"do": "start", "size_bytes": setup.size(START_BYTES)})
      if lost:
        stage.lab.cut(rail)
      answers = job.finish(START_S)
      if lost:
        stage.lab.heal(rail)
        job.stay(SETTLE_S, may_stand_still=True)
      seconds.append(max(answer["seconds"] for answer in answers))
      wrong += sum(answer["wrong"] for answer in answers)
    lines = [line for rank in range(job.world) for line in job.logs(rank).splitlines() if "via COLLNET" in line]
    context.results.add(case, "starts", nodes=setup.nodes, rails=setup.rails, rate=setup.rate or "none", daemon=daemons, starts=count,
                        with_a_fault=count // 10, wrong=wrong, median_s=round(figures.percentile(seconds, 0.5) or 0.0, 3),
                        worst_s=round(max(seconds), 3), collnet_lines=len(lines))
    context.results.add(case, "exit", **stage.end_job(job))
