"""One job of two neighbours on an emulated fabric, the faults that strike it, and what they cost it."""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import tempfile
import time
from types import TracebackType
from typing import Any, Callable, Sequence

from testing.lab import stalls
from testing.lab.cluster import Binaries, Cluster, Job, JobOptions, keep_logs
from testing.lab.lab import LabError, RailId, monotonic_ns
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from testing.lab.stalls import Window
from tests.bench import fault_figures, traffic
from tests.bench.fault_figures import Tally
from tests.bench.pauses import Pauses

NODES, RAILS = 2, 4
TICK_S = 0.05
START_S, STOP_S = 30.0, 20.0
# Beyond this, longer than any fault here lasts, a job that completes nothing hangs.
HANG_S = 20.0
AIM_S = 3.0
# Some seconds of both ranks' traces.
RECENT_ROWS = 3000
NOTHING_TAKEN_OFF = Window(0, 0)
# Before the first fault, so that the healthy statistic has its two seconds.
SETTLE_S, HEALTHY_S = 0.7, 2.2
# A stall is looked for so long after a fault.
AFTER_FAULT_S = 2.1
# A repaired rail is back when it has carried so much; it is waited for so long.
BACK_BYTES, BACK_S = 4 << 20, 20.0


class JobBroken(Exception):
  """The job died or hangs: an error of what is tested, not of the rig."""


@dataclasses.dataclass(frozen=True)
class Setup:
  """Of all jobs of a run."""
  binaries: Binaries
  rate: str
  size: str
  environment: dict[str, str]
  daemons: bool
  keep: pathlib.Path | None
  pauses: Pauses
  print_line: Callable[[str], None]


class Stage:
  """A context manager. A job that breaks is written into the tally and ends the block; errors of the rig go through."""

  def __init__(self, setup: Setup, tally: Tally):
    self._setup, self._tally = setup, tally
    self._stack = contextlib.ExitStack()
    self._faults_ns: list[int] = []
    self._resumes_ns: list[int] = []
    self._job: Job | None = None
    self._stopped = self._counted = False
    self.healthy: Window | None = None
    self.broke = False

  def __enter__(self) -> "Stage":
    with contextlib.ExitStack() as stack:
      # In /tmp whatever TMPDIR says: the path of a Unix socket has room for 107 bytes.
      self._folder = pathlib.Path(tempfile.mkdtemp(prefix="r2cc-bench-", dir="/tmp"))
      stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
      self.lab = stack.enter_context(NamespaceLab(NODES, RAILS, self._setup.rate, self._tally.fabric))
      processes = stack.enter_context(Processes(self._folder))
      self._cluster = Cluster(self.lab, self._setup.binaries, self._folder, processes, self._setup.daemons)
      if self._setup.daemons:
        self._cluster.start_daemons()
      self._stack = stack.pop_all()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
    with self._stack:
      if isinstance(error, JobBroken):
        self.broke = True
        self._tally.errors.append(str(error))
        self._setup.print_line(f"  {error}")
        if self._job is not None:
          self._count_migrations()
          self._job.kill()
          self._take_figures()
      if self._setup.keep is not None:
        keep_logs(self._folder, self._setup.keep / f"{self._tally.case}-{self._tally.fabric}-{monotonic_ns()}")
    return isinstance(error, JobBroken)

  # The job.

  def start(self, healthy_s: float = HEALTHY_S) -> None:
    """Until it moves; then a healthy stretch, if any is wanted."""
    options = JobOptions(size=self._setup.size, seconds_max=3600, timeout_s=60, environment={"R2CC_LOG": "info"} | self._setup.environment,
                         flags=("--debug", "--progress", "0"))
    self._job = self._cluster.start_job("job", options)

    def moving() -> bool:
      self._look()
      return sum(1 for row in self.rows if row.kind == "iteration") >= 2 * NODES

    if not wait_until(moving, START_S, TICK_S):
      raise JobBroken(f"the job moved nothing within {START_S:g} s: {self._last_lines()}")
    if healthy_s > 0:
      self.stay(SETTLE_S)
      self.healthy = self.stay(healthy_s)

  @property
  def rows(self) -> list[Any]:
    return self._require_job().follower.rows

  def stay(self, seconds: float) -> Window:
    """Lets the job run, and notices when it dies or hangs."""
    begin_ns = monotonic_ns()
    deadline_s = time.monotonic() + seconds
    while (left_s := deadline_s - time.monotonic()) > 0:
      time.sleep(min(TICK_S, left_s))
      self._look()
    return Window(begin_ns, monotonic_ns())

  def goodput_gbps(self, window: Window) -> float:
    return stalls.goodput_gbps(self.rows, window)

  def stop(self) -> None:
    """Both ranks agree on a last iteration and report."""
    job = self._require_job()
    self._count_migrations()
    self._tally.tcp_timeouts.append(sum(traffic.tcp_timeouts(self._kernel_table(node, "netstat")) for node in range(NODES)))
    job.ask_to_stop()
    if not job.wait(STOP_S):
      raise JobBroken(f"the job did not end within {STOP_S:g} s of being asked to: {self._last_lines()}")
    if failures := job.failures():
      raise JobBroken(failures[0])
    self._take_figures()

  # Faults.

  def aim(self) -> None:
    """Returns in the middle of a collective; where none can be foreseen, at once."""
    deadline_ns = monotonic_ns() + round(AIM_S * 1e9)
    while (now_ns := monotonic_ns()) < deadline_ns:
      self._look()
      strike = stalls.middle_of_iteration([row for row in self.rows[-RECENT_ROWS:] if row.rank == 0])
      if strike is not None and now_ns <= strike.end_ns:
        time.sleep(max(0.0, (strike.begin_ns - monotonic_ns()) / 1e9))
        return
      time.sleep(0.01)

  def struck(self, time_ns: int) -> None:
    """A fault of which the stall is to be measured."""
    self._faults_ns.append(time_ns)

  def resumes_after(self, repair_ns: int) -> None:
    """A repair that ended a standstill."""
    self._resumes_ns.append(repair_ns)

  def repair(self, rails: Sequence[RailId], heal: Callable[[RailId], int]) -> bool:
    """And waits until each carries data again; False: one did not."""
    job = self._require_job()
    for rail in rails:
      heal(rail)
    begin_s = time.monotonic()
    before = {rail: self.sent_bytes(rail.node)[f"rail{rail.rail}"] for rail in rails}

    def back() -> bool:
      self._look()
      return all(self.sent_bytes(rail.node)[f"rail{rail.rail}"] - before[rail] >= BACK_BYTES for rail in rails)

    if wait_until(back, BACK_S, TICK_S):
      self._tally.recoveries_s.append(time.monotonic() - begin_s)
      return True
    self._tally.not_recovered += 1
    self._setup.print_line(f"  {', '.join(map(str, rails))}: carried nothing within {BACK_S:g} s of the repair ({job.name})")
    return False

  def sent_bytes(self, node: int) -> dict[str, int]:
    """By interface of `node`."""
    return traffic.sent_bytes(self._kernel_table(node, "dev"))

  def _kernel_table(self, node: int, name: str) -> str:
    """Without the delay of starting a program: a rank lives in its node's namespace."""
    try:
      return pathlib.Path(f"/proc/{self._require_job().ranks[node].pid}/net/{name}").read_text(encoding="ascii")
    except OSError as error:
      raise JobBroken(f"rank {node} is gone: {self._last_lines()}") from error

  def _require_job(self) -> Job:
    if self._job is None:
      raise LabError("no job was started")
    return self._job

  def _last_lines(self) -> str:
    return " / ".join(rank.last_lines(2) for rank in self._require_job().ranks)

  def _look(self) -> None:
    job = self._require_job()
    job.follower.poll()
    if job.dead_rank() is not None:
      wait_until(lambda: all(not rank.is_alive() for rank in job.ranks), 2.0)  # each has a word about it
      ended = [(index, rank) for index, rank in enumerate(job.ranks) if rank.returncode not in (None, 0)]
      index, rank = ended[0] if ended else (0, job.ranks[0])
      raise JobBroken(f"rank {index} ended with {rank.returncode}: {rank.last_lines()}")
    last_ns = stalls.last_completion_ns(job.follower.rows[-RECENT_ROWS:])
    if last_ns is not None and monotonic_ns() - last_ns > HANG_S * 1e9:
      raise JobBroken(f"the job hangs: nothing completed for {HANG_S:g} s: {self._last_lines()}")

  def _count_migrations(self) -> None:
    """Of both ranks, before they close what they opened; once."""
    if not self._counted:
      self._counted = True
      self._tally.given_up += sum(fault_figures.links_given_up(rank.errors()) for rank in self._require_job().ranks)

  def _take_figures(self) -> None:
    """Of a job that has ended, however it did."""
    job, tally = self._require_job(), self._tally
    if self._stopped:
      return
    self._stopped = True
    end_ns = monotonic_ns()
    job.follower.poll()
    rows = job.follower.rows
    try:
      report = job.report()
      tally.wrong += report["wrong_elements"]
      tally.late_writes += report["late_writes"]
    except (LabError, KeyError):
      if not tally.errors:
        tally.errors.append(f"rank 0 left no report: {self._last_lines()}")
    if self.healthy is None:
      return
    pauses = self._setup.pauses.windows()
    tally.healthy_waits_ms.append(stalls.longest_wait_ns(rows, self.healthy, pauses) / 1e6)
    fresh = [stalls.stall_ms(rows, fault_ns, NOTHING_TAKEN_OFF, end_ns, pauses) for fault_ns in self._faults_ns]
    tally.waits_ms += fresh
    tally.waits_with_pauses_ms += [stalls.stall_ms(rows, fault_ns, NOTHING_TAKEN_OFF, end_ns) for fault_ns in self._faults_ns]
    for repair_ns in self._resumes_ns:
      after_ns = min((row.time_ns for row in rows if row.kind in ("send", "recv") and row.time_ns > repair_ns), default=end_ns)
      tally.resumes_ms.append((after_ns - repair_ns) / 1e6)
    shown = json.dumps([round(wait, 1) for wait in fresh])
    self._setup.print_line(f"  {tally.case} {tally.fabric}: {tally.runs} runs; longest waits of this job {shown} ms, when healthy "
                           f"{tally.healthy_waits_ms[-1]:.1f} ms; TCP timeouts so far: {sum(tally.tcp_timeouts)}")
