"""What cases share: one cluster with one job that outlives a case, and a loop of collectives that faults strike."""

import contextlib
import dataclasses
from types import TracebackType
from typing import Any, Callable

from testing.lab.lab import RailId, monotonic_ns
from tests.bench import fault_figures
from tests.gpu import figures
from tests.gpu.collective_names import BUS_OPERATIONS
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.results import Results
from tests.gpu.stage import BACK_BYTES, Setup, Stage

MIB = 1 << 20
LOOP_BYTES = 64 * MIB
# After a fault or a repair, before a steady state is measured: a repaired rail has its whole share after 300 ms.
SETTLE_S = 1.0
STEADY_S, QUICK_STEADY_S = 4.0, 2.0
AFTER_FAULT_S = 2.1
# Rows come in batches; beyond this the last one is old because the job stands still.
STILL_STALLS_MS = 500.0


@dataclasses.dataclass
class Bench:
  """A stage with one R2CC job; it serves case after case until one breaks it."""
  stage: Stage
  job: Job


class Context:
  """Of a whole run."""

  def __init__(self, setup: Setup, results: Results):
    self.setup, self.results = setup, results
    self.case = ""  # the one that runs
    self.broken_ends = 0  # benches whose ranks did not end well
    self._stack = contextlib.ExitStack()
    self._key: tuple[Any, ...] | None = None
    self._bench: Bench | None = None

  def bench(self, nodes: int, daemons: bool = False, per_node: int = 1) -> Bench:
    """The one that is there, if it is of this kind and whole; otherwise a new one in its place."""
    key = (nodes, daemons, per_node)
    if self._bench is not None and self._key == key and len(self._bench.job.alive()) == self._bench.job.world:
      return self._bench
    self.drop_bench()
    name = f"bench-{nodes}x{per_node}" + ("-daemon" if daemons else "")
    with contextlib.ExitStack() as stack:
      stage = stack.enter_context(Stage(self.setup, name, nodes, self.setup.rate, daemons))
      job = stage.start_job("r2cc", R2CC, per_node=per_node,
                            environment={"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "R2CC_LOG": "info"})
      self._stack, self._bench, self._key = stack.pop_all(), Bench(stage, job), key
    return self._bench

  def drop_bench(self) -> None:
    """After a case that broke it, and before one that wants the machine for itself."""
    self._bench = self._key = None
    self._stack.close()

  def end_bench(self) -> None:
    """In order: how the ranks end is a finding too."""
    if self._bench is not None and self._key is not None:
      bench, key = self._bench, self._key
      variant = f"{key[0]}x{key[2]}" + ("+daemon" if key[1] else "")
      try:
        self.results.add("exit", variant, **bench.stage.end_job(bench.job))
      except JobBroken as broken:
        self.results.add("exit", variant, broken=str(broken)[:1500])
        self.broken_ends += 1
      finally:
        self.drop_bench()


class Loop:
  """A context manager: a collective again and again, every element checked, until the block ends."""

  def __init__(self, context: Context, bench: Bench, operation: str = "all_reduce", size_bytes: int = LOOP_BYTES):
    self._context, self.bench, self.job, self.lab = context, bench, bench.job, bench.stage.lab
    self.operation, self.size_bytes = operation, context.setup.size(size_bytes)
    self.stalls_ms: list[float] = []
    self.backs_s: list[float] = []
    self.not_back = 0
    self.rails: list[RailId] = []  # those that carry something when all is well
    self.is_over = False  # the job ended within the block, as was expected
    self.usual_ms = 0.0
    self.healthy_s: float | None = None

  def __enter__(self) -> "Loop":
    self._given_up = self._links_given_up()
    self.job.begin({"do": "loop", "operation": self.operation, "size_bytes": self.size_bytes})
    self.job.wait_rows(3, 60.0)
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    if error is not None and not self.is_over:
      self._context.results.add(self._context.case, f"{self.operation} so far", **self.found())
    elif not self.is_over:
      self.job.stop_loop()

  # Windows.

  def steady(self, settle_s: float = SETTLE_S) -> list[figures.Row]:
    """Iterations of some seconds in which nothing changes."""
    self.job.stay(settle_s)
    begin_ns, end_ns = self.job.stay(QUICK_STEADY_S if self._context.setup.quick else STEADY_S)
    return figures.within(self.job.rows, begin_ns, end_ns)

  def healthy(self) -> dict[str, Any]:
    """Also what later stalls are measured against."""
    stage = self.bench.stage
    before = {rail: stage.sent_bytes(self.job, rail) for rail in stage.all_rails()}
    rows = self.steady()
    self.rails = [rail for rail in before if stage.sent_bytes(self.job, rail) - before[rail] >= BACK_BYTES] or list(before)
    self.healthy_s = figures.mean_s(rows)
    self.usual_ms = figures.median_cycle_ms(rows) or 0.0
    return {"healthy_ms": figures.rounded(figures.median_ms(rows)), "rails_used": len(self.rails), **self.bandwidth("healthy", rows)}

  def bandwidth(self, name: str, rows: list[figures.Row]) -> dict[str, Any]:
    seconds = figures.mean_s(rows)
    if seconds is None or self.operation not in BUS_OPERATIONS:
      return {}
    of = BUS_OPERATIONS[self.operation]
    return {f"busbw_{name}_gbps": round(figures.busbw_gbps(of, self.size_bytes, self.job.world, seconds), 3)}

  def against_healthy(self, name: str, rows: list[figures.Row], left_share: float) -> dict[str, Any]:
    """`left_share`: of the rails' rate."""
    seconds = figures.mean_s(rows)
    result = {f"{name}_ms": figures.rounded(figures.median_ms(rows)), **self.bandwidth(name, rows)}
    if seconds is not None and self.healthy_s is not None:
      ratio = self.healthy_s / seconds
      result |= {f"{name}_ratio": round(ratio, 4), f"{name}_of_what_is_left": round(ratio / left_share, 4)}
    return result

  # Faults.

  def struck(self, fault_ns: int, after_s: float = AFTER_FAULT_S, may_stand_still: bool = False) -> None:
    """Lets the loop run on after a fault and notes the stall."""
    self.job.stay(after_s, may_stand_still)
    rows = self.job.rows
    stall = figures.stall_ms(rows, fault_ns, self.usual_ms) or 0.0
    open_ms = (monotonic_ns() - rows[-1].end_ns) / 1e6 - self.usual_ms
    self.stalls_ms.append(max(stall, open_ms) if open_ms > STILL_STALLS_MS else stall)

  def repair(self, rails: list[RailId], heal: Callable[[RailId], int]) -> bool:
    """And waits until each carries data again."""
    for rail in rails:
      heal(rail)
    back_s = self.bench.stage.wait_back(self.job, [rail for rail in rails if not self.rails or rail in self.rails])
    if back_s is None:
      self.not_back += 1
      self._context.setup.print_line(f"  {', '.join(map(str, rails))}: carried nothing within the time after the repair")
      return False
    self.backs_s.append(back_s)
    self.job.stay(SETTLE_S)
    return True

  def found(self) -> dict[str, Any]:
    """All that was noted so far."""
    result: dict[str, Any] = {"usual_cycle_ms": figures.rounded(self.usual_ms), "iterations": self.job.done_count(),
                              "wrong": self.job.wrong}
    rows = self.job.rows
    if rows:
      result |= {"longest_cycle_ms": figures.rounded(figures.longest_cycle_ms(rows, rows[0].begin_ns, rows[-1].end_ns), 1)}
    result |= {"links_given_up": self._links_given_up() - self._given_up}
    if self.stalls_ms:
      result |= {"stall_ms": figures.spread(self.stalls_ms, 1), "stalls_ms": [round(stall, 1) for stall in self.stalls_ms]}
    if self.backs_s or self.not_back:
      result |= {"back_s": figures.spread(self.backs_s, 2), "not_back": self.not_back}
    return result

  def _links_given_up(self) -> int:
    """As the plugins log it: links that traffic was moved off."""
    return sum(fault_figures.links_given_up(self.job.logs(rank)) for rank in range(self.job.world))
