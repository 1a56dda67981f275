"""What happened in a drill, and what it amounts to. Pure: made by the runner, read by the report."""

import dataclasses
import re
from typing import Any, Sequence

from deploy.drill import comparison, story
from deploy.drill.comparison import Comparison
from testing.lab import stalls
from testing.lab.lab import RailId
from testing.lab.stalls import Window
from testing.lab.traces import Row

# A line of the plugin's log (netplugin/transport/record.cc).
_GIVEN_UP = re.compile(r"R2CC: link \S+ -> \S+ given up \([^)]*\), (\d+) bytes replayed")
# A fault's dip lies in here; what comes later is the degraded normal.
DIP_NS = 500_000_000
# A phase's figures leave out the time in which the fault is dealt with.
SETTLE_NS = 700_000_000


@dataclasses.dataclass(frozen=True)
class Mark:
  """A moment that the time line and the chart show."""
  time_ns: int
  letter: str
  text: str


@dataclasses.dataclass(frozen=True)
class Phase:
  """A stretch in which nothing was done to the job."""
  name: str
  job: int
  window: Window
  # Of the first node, sent bytes by rail as its interfaces count them; empty without interfaces.
  rail_bytes: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Fault:
  """A rail lost under a running job."""
  kind: str  # "link-down", "silence" or "fail-nic"
  rail: RailId
  job: int
  time_ns: int
  phase: str
  failovers: int = 0
  replayed_bytes: int | None = None  # None: nobody was there to report it
  stall_ms: float | None = None
  standstill_ms: float | None = None  # nothing at all completed on any flow, and that was not so when healthy
  before_gbps: float = 0.0
  during_gbps: float = 0.0
  after_gbps: float = 0.0


@dataclasses.dataclass
class Record:
  """Grows while the drill runs."""
  mode: str
  nodes: int
  rate_gbps: float | None
  begin_ns: int
  end_ns: int = 0
  marks: list[Mark] = dataclasses.field(default_factory=list)
  phases: list[Phase] = dataclasses.field(default_factory=list)
  faults: list[Fault] = dataclasses.field(default_factory=list)
  traces: list[list[Row]] = dataclasses.field(default_factory=list)  # by job
  reports: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # of r2cc-perf, by job that ended by itself
  comparison: Comparison | None = None
  problems: list[str] = dataclasses.field(default_factory=list)  # one line each, in the order in which they were seen

  def phase(self, name: str) -> Phase | None:
    return next((phase for phase in self.phases if phase.name == name), None)

  def all_rows(self) -> list[Row]:
    return [row for rows in self.traces for row in rows]

  def bus_bandwidth_gbps(self, name: str) -> float | None:
    """Of a phase, once it has settled."""
    phase = self.phase(name)
    if phase is None:
      return None
    begin_ns = phase.window.begin_ns + (SETTLE_NS if name == story.DEGRADED else 0)
    return stalls.bus_bandwidth_gbps(self.traces[phase.job], Window(begin_ns, phase.window.end_ns), self.nodes)

  def iterations(self) -> int:
    return sum(1 for row in self.all_rows() if row.kind == "iteration" and row.rank == 0)


def measure(fault: Fault, rows: Sequence[Row], healthy: Window, end_ns: int) -> None:
  """Fills in a fault's figures, the phase after it having ended at `end_ns`."""
  before = Window(fault.time_ns - stalls.STALL_WINDOW_NS, fault.time_ns)
  dip_ns = fault.time_ns + DIP_NS
  fault.stall_ms = stalls.stall_ms(rows, fault.time_ns, healthy, end_ns)
  fault.standstill_ms = stalls.standstill_ms(rows, fault.time_ns, healthy)
  fault.before_gbps = stalls.goodput_gbps(rows, before)
  fault.during_gbps = stalls.goodput_gbps(rows, Window(fault.time_ns, dip_ns))
  fault.after_gbps = stalls.goodput_gbps(rows, Window(dip_ns, max(end_ns, dip_ns + 1)))


def count_failovers(fault: Fault, events: Sequence[dict[str, Any]], end_ns: int) -> None:
  """Adds up what the nodes' own daemons heard from their jobs between the fault and `end_ns`."""
  own = [event for event in events if event.get("kind") == "failover" and fault.time_ns <= int(event.get("monotonic_ns", 0)) <= end_ns]
  fault.failovers = len(own)
  fault.replayed_bytes = sum(int(event.get("replayed_bytes", 0)) for event in own)


def count_logged_failovers(fault: Fault, output: str) -> None:
  """The same from what the ranks wrote meanwhile, where no daemon hears them: R2CC_LOG=info, and --debug of r2cc-perf."""
  replayed = [int(count) for count in _GIVEN_UP.findall(output)]
  fault.failovers, fault.replayed_bytes = len(replayed), sum(replayed)


def judge(record: Record, jobs_expected: int) -> list[str]:
  """Why the drill failed, the first cause first; empty: it passed."""
  reasons = list(record.problems)
  for index, report in enumerate(record.reports):
    job = f"job {index + 1}"
    if report.get("wrong_elements") != 0:
      reasons.append(f"{job}: {report.get('wrong_elements')} wrong elements")
    if report.get("late_writes") != 0:
      reasons.append(f"{job}: {report.get('late_writes')} late writes into buffers that were done")
    if record.mode == "verbs" and str(report.get("devices")).count("(RDMA, ") != report.get("channels"):
      reasons.append(f"{job}: not all of its rails went by RDMA: {report.get('devices')}")
    if report.get("pass") is not True:
      reasons.append(f"{job}: r2cc-perf says that it did not pass")
  if len(record.reports) < jobs_expected:
    reasons.append(f"{len(record.reports)} of {jobs_expected} jobs ran to their end")
  for phase in record.phases:
    if stalls.received_bytes(record.traces[phase.job], phase.window) == 0:
      reasons.append(f"no progress in phase '{phase.name}'")
  return reasons


def summary(record: Record, reasons: Sequence[str], jobs_expected: int) -> dict[str, Any]:
  """The JSON object of --json."""

  def total(key: str) -> int | None:
    values = [report.get(key) for report in record.reports]
    return sum(values) if len(values) == jobs_expected and all(isinstance(value, int) for value in values) else None

  def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)

  return {
      "pass": not reasons,
      "reason": reasons[0] if reasons else "",
      "mode": record.mode,
      "seconds": round((record.end_ns - record.begin_ns) / 1e9, 1),
      "iterations": record.iterations(),
      "wrong_elements": total("wrong_elements"),
      "late_writes": total("late_writes"),
      "rate_gbps": record.rate_gbps,
      "busbw_healthy_gbps": rounded(record.bus_bandwidth_gbps(story.HEALTHY)),
      "busbw_degraded_gbps": rounded(record.bus_bandwidth_gbps(story.DEGRADED)),
      "busbw_restored_gbps": rounded(record.bus_bandwidth_gbps(story.RESTORED)),
      "half_lost": None if record.comparison is None else {
          "rate": comparison.RATE,
          "size": comparison.SIZE,
          "bound_ms": round(1000 * record.comparison.bound_s, 1),
          "balance_ms": round(1000 * record.comparison.seconds[comparison.BALANCE], 1),
          "degraded_all_reduce_ms": round(1000 * record.comparison.seconds[comparison.DEGRADED], 1),
      },
      "faults": [{
          "kind": fault.kind,
          "rail": str(fault.rail),
          "stall_ms": None if fault.stall_ms is None else round(fault.stall_ms, 2),
          "standstill_ms": None if fault.standstill_ms is None else round(fault.standstill_ms, 2),
          "replayed_bytes": fault.replayed_bytes,
          "failovers": fault.failovers,
          "mid_iteration": stalls.mid_iteration(record.traces[fault.job], fault.time_ns),
      } for fault in record.faults],
  }
