"""libnccl-profiler-r2cc.so in stock NCCL: which operation a cut held up, and what the profiler costs while nothing fails."""

import re
import time
from typing import Any, Sequence

from testing.lab.binaries import built_file
from tests.gpu import figures
from tests.gpu.bench import MIB, SETTLE_S, Context
from tests.gpu.case_healthy import Item, in_turns
from tests.gpu.figures import Row
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.stage import Stage

CUTS, QUICK_CUTS = 10, 4
LOOP_BYTES = 64 * MIB
# Of the loop's operation, as NCCL and PyTorch call it; no other communicator has it.
FUNCTION, OPERATION = "ReduceScatter", "own_reduce_scatter"
# The process's own reports come within a second of the stall, and the event collects them for one more.
REPORT_S = 2.5
# An operation that begins later than that after the cut did not wait for it.
LATE_NS = 500_000_000
# What a stall is at least that has to be named.
STALL_NS = 1_000_000
# Two of the sizes that tell: one is all latency, one all bandwidth. Bytes, first iterations, iterations of a block.
ITEMS: Sequence[Item] = ((8, 10, 200), (64 * MIB, 1, 4))
# Where a job's threads come to sit decides for as long as it lives: so several lives, and a second job without the profiler.
LIVES, QUICK_LIVES, LIFE_PAIRS, QUICK_LIFE_PAIRS = 4, 2, 12, 10
ON, OFF, AGAIN = "profiled", "plain", "plain-again"
ENVIRONMENT = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET", "R2CC_LOG": "info"}


def environment() -> dict[str, str]:
  return {"NCCL_PROFILER_PLUGIN": str(built_file("nccl/profiler/libnccl-profiler-r2cc.so"))}


def communicators(log: str) -> list[int]:
  """The ids of a rank's communicators, in the order in which they began, as NCCL logs them. Pure."""
  return [int(text, 16) for text in re.findall(r"commId 0x([0-9a-f]+) - Init COMPLETE", log)]


def mistakes(held: dict[str, Any], communicator: int, world: int, rows: Sequence[Row], fault_ns: int) -> list[str]:
  """What is wrong in the name of an operation of the loop that a cut held up. Pure."""
  found = []
  if held.get("function") != FUNCTION:
    found.append(f"function {held.get('function')}")
  if int(held.get("communicator", 0)) != communicator:
    found.append(f"communicator {int(held.get('communicator', 0)):x} instead of {communicator:x}")
  rank = int(held.get("rank", 0))
  if f"n{rank}" != held.get("node") or int(held.get("ranks", 0)) != world:
    found.append(f"rank {rank} of {held.get('ranks')} on {held.get('node')}")
  number = int(held.get("number", 0))
  row = next((row for row in rows if row.iteration == number - 1), None)
  if row is None or row.end_ns < fault_ns or row.begin_ns > fault_ns + LATE_NS:
    found.append(f"number {number}, and the cut was at {[row.iteration + 1 for row in rows if row.begin_ns <= fault_ns <= row.end_ns]}")
  return found


def _newest_fault(stage: Stage, job: Job, nic: str, since_ns: int) -> dict[str, Any]:
  for report in stage.ctl_json(0, "job", "report", job.name).get("jobs", []):
    for fault in report.get("faults", []):
      if fault.get("nic") == nic and int(fault.get("time_ns", 0)) >= since_ns:
        return fault
  return {}


def _name(context: Context, case: str) -> None:
  """Cuts in turn; each is to name the loop's operation, on a communicator of its own beside the usual one."""
  setup = context.setup
  result: dict[str, Any] = {"cuts": 0, "stalls": 0, "named": 0, "operations": 0}
  wrong: list[str] = []
  with Stage(setup, case, setup.nodes, setup.rate, daemons=True) as stage:
    job = stage.start_job(ON, R2CC, environment=ENVIRONMENT | environment())
    if not re.search("R2CC: profiler|loaded external profiler", job.logs(0)):
      raise JobBroken(f"NCCL has not loaded the profiler: it takes one from 2.23 on; {job.last_lines()}")
    job.begin({"do": "loop", "operation": OPERATION, "size_bytes": setup.size(LOOP_BYTES)})
    job.wait_rows(3, 60.0)
    communicator = communicators(job.logs(0))[-1]
    job.stay(SETTLE_S)
    rails = stage.all_rails()
    for number in range(QUICK_CUTS if setup.quick else CUTS):
      rail, since_ns = rails[number % len(rails)], time.time_ns()
      fault_ns = stage.lab.cut(rail)
      job.stay(REPORT_S)
      fault = _newest_fault(stage, job, f"rail{rail.rail}", since_ns)
      stall_ns, held = int(fault.get("stall_ns", 0)), fault.get("held", [])
      in_row = any(row.begin_ns <= fault_ns <= row.end_ns for row in job.rows)
      result["cuts"] += 1
      if in_row and stall_ns >= STALL_NS:
        result["stalls"] += 1
        result["named"] += 1 if held else 0
        result["operations"] += len(held)
        wrong += [f"{rail}: {mistake}" for one in held for mistake in mistakes(one, communicator, job.world, job.rows, fault_ns)]
      context.results.add(case, f"cut {number + 1}", rail=str(rail), stall_ms=round(stall_ns / 1e6, 2), in_operation=in_row, held=held)
      stage.lab.heal(rail)
      stage.wait_back(job, [rail])
      job.stay(SETTLE_S)
    events = [sum(event.get("kind") == "operation-held" for event in stage.events(node)) for node in range(stage.nodes)]
    context.results.print_line(stage.ctl(0, "job", "report", job.name))
    job.stop_loop()
    context.results.add(case, "named", nodes=stage.nodes, rails=setup.rails, **result, wrong=wrong, events=events,
                        wrong_elements=job.wrong)
    context.results.print_line(f"  {case}: {result['cuts']} cuts, {result['stalls']} in an operation and with a stall, "
                               f"{result['named']} named, {len(wrong)} mistakes; events by node: {events}")
    context.results.add(case, "exit", **stage.end_job(job))
  if wrong or job.wrong or result["named"] == 0 or result["named"] < result["stalls"] or max(events) > result["cuts"] or not any(events):
    raise JobBroken(f"{case}: {result}, events {events}, {job.wrong} wrong elements: {'; '.join(wrong)[:800]}")


def within_spread(on_off: dict[str, Any], chance: dict[str, Any]) -> bool:
  """Whether a job with the profiler differs from one without it by no more than two without it may differ. Pure."""
  return on_off["ratio"] <= max(chance["high"], 1 / chance["low"])


def _cost(context: Context, case: str) -> None:
  setup = context.setup
  lives, pairs = (QUICK_LIVES, QUICK_LIFE_PAIRS) if setup.quick else (LIVES, LIFE_PAIRS)
  environments = {ON: environment(), OFF: None, AGAIN: None}
  found: dict[str, list[list[float]]] = {name: [[] for _ in ITEMS] for name in environments}
  with Stage(setup, f"{case}-cost", setup.nodes, setup.rate) as stage:
    for life in range(lives):
      jobs = {name: stage.begin_job(name, R2CC, environment=more) for name, more in environments.items()}
      for job in jobs.values():
        job.wait_ready()
      in_turns(context, stage, jobs, [(size, 0, 1) for size, _, _ in ITEMS], range(1))
      for name, times in in_turns(context, stage, jobs, ITEMS, range(life * pairs, (life + 1) * pairs)).items():
        for index, more in enumerate(times):
          found[name][index] += [timed.mean_s for timed in more]
      for name, job in jobs.items():
        context.results.add(case, f"{name} exit", life=life, **stage.end_job(job))
      setup.print_line(f"  life {life + 1} of {lives} is over")
  beyond = []
  for index, (size, _, _) in enumerate(ITEMS):
    seconds = {name: times[index] for name, times in found.items()}
    on_off, chance = (figures.ratio_fields(seconds[name], seconds[OFF]) for name in (ON, AGAIN))
    size_bytes = setup.size(size) if size >= MIB else size
    within = within_spread(on_off, chance)
    context.results.add(case, "on over off", nodes=setup.nodes, rate=setup.rate or "none", size_bytes=size_bytes, lives=lives,
                        **{f"{name}_ms": round(1e3 * (figures.percentile(times, 0.5) or 0.0), 4) for name, times in seconds.items()},
                        on_over_off=on_off, off_again_over_off=chance, within_spread=within)
    context.results.print_line(f"  {size_bytes:10d} B  on over off {on_off['ratio']} ({on_off['low']} to {on_off['high']})"
                               f"  off over off {chance['ratio']} ({chance['low']} to {chance['high']})"
                               f"  {'within' if within else 'BEYOND'} the spread")
    beyond += [] if within else [size_bytes]
  if beyond:
    raise JobBroken(f"{case}: the profiler costs more than two jobs without it differ, at {beyond} bytes")


def profiler(context: Context, case: str, daemons: bool = False) -> None:
  """Cuts first, with an r2ccd on each node; then the cost, without one."""
  del daemons
  context.end_bench()
  _name(context, case)
  _cost(context, case)
