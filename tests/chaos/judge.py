"""What a run of chaos found, and whether that is well. Pure."""

import bisect
import collections
import dataclasses
from typing import Any, Iterable, Sequence

from testing.lab.stalls import Window, overlap_ns
from testing.lab.traces import Row

# Shorter waits are no stalls: on a busy machine a healthy job has them.
STALL_LEAST_NS = 50_000_000
BIN_NS = 500_000_000
# A stall counts for a fault if it lies in the fault's time or so long after it.
AFTER_NS = 2_000_000_000
GOODPUT_NS = 3_000_000_000
# What a process that does as much as before may have more of. A rank's buffers of messages on their way are part of its memory; so are
# a daemon's events and the allocator's arenas.
DESCRIPTORS_MORE, THREADS_MORE, DAEMON_RSS_MORE_KB, RANK_RSS_MORE_KB = 16, 4, 48 << 10, 96 << 10


class Timeline:
  """What jobs received and how long they waited, over time. Keeps no rows: an hour of them."""

  def __init__(self) -> None:
    self._bins: dict[int, int] = collections.defaultdict(int)
    self._waits: list[tuple[int, int]] = []  # begin and end, as they ended
    self._sorted = True

  def take(self, rows: Iterable[Row]) -> None:
    """Of one job. A collective of CollNet is one request: its rows are iterations alone."""
    rows = list(rows)
    by_message = any(row.kind == "recv" for row in rows)
    for row in rows:
      if row.kind == "recv" or (row.kind == "iteration" and not by_message):
        self._bins[row.time_ns // BIN_NS] += row.size_bytes
      if (row.kind != "iteration" or not by_message) and row.wait_ns >= STALL_LEAST_NS:
        self._waits.append((row.begin_ns, row.time_ns))
        self._sorted = False

  def longest_wait_ns(self, window: Window, stopped: Sequence[Window] = ()) -> int:
    """The longest part of `window` in which a flow waited, without what of it lies in `stopped`, of which no two have a time in common."""
    if not self._sorted:
      self._waits.sort(key=lambda wait: wait[1])
      self._sorted = True
    first = bisect.bisect_left(self._waits, window.begin_ns, key=lambda wait: wait[1])
    waits = [Window(max(begin, window.begin_ns), min(end, window.end_ns)) for begin, end in self._waits[first:] if begin < window.end_ns]
    return max((wait.end_ns - wait.begin_ns - overlap_ns(stopped, wait) for wait in waits), default=0)

  def gbps(self, window: Window) -> float:
    """Of all ranks together, to half a second."""
    bins = range(window.begin_ns // BIN_NS, window.end_ns // BIN_NS)
    return sum(self._bins.get(each, 0) for each in bins) * 8 / (len(bins) * BIN_NS) if bins else 0.0


def merged(windows: Iterable[Window]) -> list[Window]:
  """The same times, but no two have one in common."""
  found: list[Window] = []
  for window in sorted(windows, key=lambda window: window.begin_ns):
    if found and window.begin_ns <= found[-1].end_ns:
      found[-1] = Window(found[-1].begin_ns, max(found[-1].end_ns, window.end_ns))
    else:
      found.append(window)
  return found


@dataclasses.dataclass(frozen=True)
class Usage:
  """Of one process at one time."""
  descriptors: int
  threads: int
  rss_kb: int


def growth(name: str, before: Usage, after: Usage, rss_more_kb: int) -> list[str]:
  """What a process has more of than it may, a line each."""
  found = []
  for what, more in (("descriptors", DESCRIPTORS_MORE), ("threads", THREADS_MORE), ("rss_kb", rss_more_kb)):
    was, now = getattr(before, what), getattr(after, what)
    if now > was + more:
      found.append(f"{name}: {what} grew from {was} to {now}")
  return found


@dataclasses.dataclass
class FaultDone:
  """One fault and what it cost."""
  text: str
  at_s: float
  for_s: float
  begin_ns: int
  end_ns: int
  note: str = ""  # why it was not done, or not as planned
  stall_ms: float = 0.0
  before_gbps: float = 0.0
  after_gbps: float = 0.0

  @property
  def stops_a_rank(self) -> bool:
    return self.text.startswith("rank-stop")

  def measure(self, timelines: Sequence[Timeline], stopped: Sequence[Window]) -> None:
    """The stall of the job that waited longest, and what all received. While a rank was stopped nobody else is to blame."""
    window = Window(self.begin_ns, self.end_ns + AFTER_NS)
    excused = () if self.stops_a_rank else stopped
    self.stall_ms = max((timeline.longest_wait_ns(window, excused) for timeline in timelines), default=0) / 1e6
    self.before_gbps = sum(timeline.gbps(Window(self.begin_ns - GOODPUT_NS, self.begin_ns)) for timeline in timelines)
    self.after_gbps = sum(timeline.gbps(Window(self.end_ns, self.end_ns + GOODPUT_NS)) for timeline in timelines)


@dataclasses.dataclass
class JobDone:
  """One job that has ended, or was ended."""
  name: str
  kind: str
  begin_s: float
  seconds: float
  iterations: int = 0
  wrong_elements: int = 0
  late_writes: int = 0
  checked: bool = False
  killed: bool = False  # by a fault: it had to fail, and to end
  hung: str = ""  # what it did not do in time
  failures: list[str] = dataclasses.field(default_factory=list)

  def problems(self) -> list[str]:
    """A line for each thing that may not be."""
    found = []
    if self.hung:
      found.append(f"{self.name} ({self.kind}) hung: {self.hung}")
    elif self.killed:
      if not self.failures:
        found.append(f"{self.name} ({self.kind}): a rank was killed, and no rank says that it failed")
    elif self.failures:
      found += [f"{self.name} ({self.kind}) failed: {line}" for line in self.failures]
    elif not self.checked:
      found.append(f"{self.name} ({self.kind}): not every element was checked")
    if self.wrong_elements or self.late_writes:
      found.append(f"{self.name} ({self.kind}): {self.wrong_elements} wrong elements, {self.late_writes} late writes")
    return found


@dataclasses.dataclass
class Run:
  """All that is known of a run."""
  seed: int
  minutes: float = 0.0
  late_s_worst: float = 0.0  # by how much the script was late: the machine, or the rig, had too much to do
  faults: list[FaultDone] = dataclasses.field(default_factory=list)
  jobs: list[JobDone] = dataclasses.field(default_factory=list)
  growth: list[str] = dataclasses.field(default_factory=list)
  left: list[str] = dataclasses.field(default_factory=list)  # files, namespaces, processes
  daemons: list[str] = dataclasses.field(default_factory=list)  # what was wrong with daemons
  usage: dict[str, tuple[Usage, Usage]] = dataclasses.field(default_factory=dict)  # of a process: at first and at last
  rig: list[str] = dataclasses.field(default_factory=list)  # what the rig could not do

  def measure(self, timelines: Sequence[Timeline]) -> None:
    """What each fault cost."""
    stopped = merged(Window(fault.begin_ns, fault.end_ns) for fault in self.faults if fault.stops_a_rank and not fault.note)
    for fault in self.faults:
      fault.measure(timelines, stopped)

  def problems(self) -> list[str]:
    lines = [line for job in self.jobs for line in job.problems()]
    lines += self.daemons + self.growth
    return lines + [f"left behind: {line}" for line in self.left] + [f"the rig: {line}" for line in self.rig]

  def passed(self) -> bool:
    """A run that broke nothing, or ran no job, has shown nothing."""
    return not self.problems() and bool(self.jobs) and any(not fault.note for fault in self.faults)

  def counts(self) -> dict[str, Any]:
    done = [fault for fault in self.faults if not fault.note]
    return {
        "seed": self.seed,
        "minutes": round(self.minutes, 2),
        "faults": len(done),
        "faults_left_out": len(self.faults) - len(done),
        "jobs": len(self.jobs),
        "jobs_killed": sum(job.killed for job in self.jobs),
        "jobs_failed": sum(bool(job.failures) and not job.killed and not job.hung for job in self.jobs),
        "jobs_hung": sum(bool(job.hung) for job in self.jobs),
        "iterations": sum(job.iterations for job in self.jobs),
        "wrong_elements": sum(job.wrong_elements for job in self.jobs),
        "late_writes": sum(job.late_writes for job in self.jobs),
        "leaks": len(self.growth) + len(self.left),
        "late_s_worst": round(self.late_s_worst, 1),
        "stall_ms_worst": round(max((fault.stall_ms for fault in done if not fault.stops_a_rank), default=0.0)),
        "passed": self.passed(),
    }

  def json_object(self) -> dict[str, Any]:
    return self.counts() | {
        "problems": self.problems(),
        "fault_list": [dataclasses.asdict(fault) for fault in self.faults],
        "job_list": [dataclasses.asdict(job) for job in self.jobs],
        "usage": {name: [dataclasses.asdict(one) for one in pair] for name, pair in self.usage.items()},
    }

  def markdown(self) -> str:
    lines = [f"# Chaos, seed {self.seed}", "", *(f"- {name}: {value}" for name, value in self.counts().items()), "", "## Problems", "",
             *([f"- {line}" for line in self.problems()] or ["None."]), "", "## Kinds of faults", "",
             "| kind | faults | median stall ms | worst stall ms |", "|---|---|---|---|", *self._kind_rows(), "", "## Faults", "",
             "| at s | for s | fault | stall ms | Gbit/s before | after | note |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {fault.at_s:.1f} | {fault.for_s:.2f} | {fault.text} | {fault.stall_ms:.0f} | {fault.before_gbps:.3f} | "
              f"{fault.after_gbps:.3f} | {fault.note} |" for fault in self.faults]
    lines += ["", "## Jobs", "", "| job | kind | begin s | seconds | iterations | end |", "|---|---|---|---|---|---|"]
    lines += [f"| {job.name} | {job.kind} | {job.begin_s:.1f} | {job.seconds:.1f} | {job.iterations} | "
              f"{'hung' if job.hung else 'killed' if job.killed else 'failed' if job.failures else 'right'} |" for job in self.jobs]
    lines += ["", "## Processes", "", "| process | descriptors | threads | RSS KiB |", "|---|---|---|---|"]
    lines += [f"| {name} | {one.descriptors} to {two.descriptors} | {one.threads} to {two.threads} | {one.rss_kb} to {two.rss_kb} |"
              for name, (one, two) in self.usage.items()]
    return "\n".join(lines) + "\n"

  def _kind_rows(self) -> list[str]:
    by_kind: dict[str, list[float]] = collections.defaultdict(list)
    for fault in self.faults:
      if not fault.note:
        by_kind[fault.text.split()[0]].append(fault.stall_ms)
    return [f"| {kind} | {len(stalls)} | {sorted(stalls)[len(stalls) // 2]:.0f} | {max(stalls):.0f} |"
            for kind, stalls in sorted(by_kind.items())]
