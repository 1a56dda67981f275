"""Does the steps of a story to a real cluster and writes down what happened."""

import dataclasses
import time
from typing import Any, Callable, Protocol, Sequence

from deploy.drill import comparison, story
from deploy.drill.record import Fault, Mark, Phase, Record, count_failovers, count_logged_failovers, measure
from deploy.drill.story import Action, Step
from testing.lab import stalls
from testing.lab.cluster import Cluster, Job, JobOptions
from testing.lab.lab import LabError, RailId, monotonic_ns
from testing.lab.processes import wait_until
from testing.lab.stalls import Window, middle_of_iteration
from testing.lab.traces import Row

TICK_S = 0.1
# Some seconds of all ranks' traces.
RECENT_ROWS = 6000
RECOVERED_RATIO = 0.93
# Of each way: half a second each.
COMPARED_ITERATIONS = 3
_KIND_NAMES = {"link-down": "link down", "silence": "silent both ways, no event"}
# Below this an interface carries greetings, not a job.
CARRIED_BYTES_MIN = 1 << 20


@dataclasses.dataclass(frozen=True)
class Patience:
  """How long to wait before the story is broken, and for what."""
  start_s: float = 30.0
  attach_s: float = 10.0
  stop_s: float = 20.0
  # No rank completes anything. The slowest machine's iteration fits in several times.
  hang_s: float = 8.0
  # A phase does not end while nothing has completed for so long: a job that stands still is watched on.
  standstill_s: float = 2.0
  # An iteration is sought that can be hit in its middle; after that any moment with traffic must do.
  aim_s: float = 3.0
  # What each rail of n0 has sent before it counts as in use.
  carried_bytes_min: int = CARRIED_BYTES_MIN
  # How much of the traces is looked at while the job runs.
  recent_rows: int = RECENT_ROWS


class StoryBroken(Exception):
  """The story cannot go on; the text is the reason for the verdict."""


class Listener(Protocol):
  """Who watches a drill while it runs."""

  def mark(self, mark: Mark) -> None: ...

  def detail(self, text: str) -> None: ...

  def fault_measured(self, fault: Fault) -> None: ...

  def phase_measured(self, phase: Phase, goodput_gbps: float) -> None: ...

  def tick(self, phase: str, goodput_gbps: float) -> None: ...


class Runner:
  """One drill."""

  def __init__(self, cluster: Cluster, record: Record, listener: Listener, job_options: JobOptions,
               patience: Patience = Patience()):
    self._cluster, self._record, self._listener, self._job_options = cluster, record, listener, job_options
    self._patience = patience
    self._job: Job | None = None
    self._jobs = 0
    self._open_faults: list[Fault] = []

  def run(self, steps: list[Step]) -> None:
    """Whatever happens ends up in the record; LabError means that the rig failed, not the plugin."""
    doers: dict[Action, Callable[[Step], None]] = {
        Action.START_JOB: self._start_job,
        Action.STOP_JOB: self._stop_job,
        Action.CUT: lambda step: self._strike(step, self._cluster.lab.cut, self._cut_kind()),
        Action.HEAL: lambda step: self._repair(step, self._cluster.lab.heal),
        Action.SILENCE: lambda step: self._strike(step, self._cluster.lab.blackhole, "silence"),
        Action.END_SILENCE: lambda step: self._repair(step, self._cluster.lab.unblackhole),
        Action.FAIL_NIC: lambda step: self._strike(step, self._fail_nic, "fail-nic"),
        Action.RESTORE_NIC: lambda step: self._repair(step, self._restore_nic),
        Action.KILL_DAEMON: self._kill_daemon,
        Action.START_DAEMON: self._start_daemon,
        Action.STAY: self._stay,
        Action.RECOVER: self._recover,
        Action.REJOIN: self._rejoin,
        Action.COMPARE: self._compare,
    }
    try:
      for step in steps:
        doers[step.action](step)
    except StoryBroken as broken:
      # What ended the story comes before what was only noticed on the way.
      self._record.problems.insert(0, str(broken))
      self._measure_faults(monotonic_ns(), "the end", check=False)
    finally:
      if self._job is not None:
        self._job.kill()
        self._job.follower.poll()

  # The job.

  def _start_job(self, step: Step) -> None:
    del step
    cluster = self._cluster
    self._jobs += 1
    job = cluster.start_job(f"job{self._jobs}", self._job_options)
    self._job = job
    self._record.traces.append(job.follower.rows)
    self._mark(f"job {self._jobs} starts: all_reduce of {self._job_options.size} over {cluster.lab.nodes} ranks")
    def moving() -> bool:
      job.follower.poll()
      self._check_alive()
      return sum(1 for row in job.follower.rows if row.kind == "iteration" and row.rank == 0) >= 2
    if not wait_until(moving, self._patience.start_s, TICK_S):
      raise StoryBroken(f"job {self._jobs} moved nothing within {self._patience.start_s:g} s: {job.ranks[0].last_lines()}")
    self._check_attached()

  def _check_attached(self) -> None:
    if not self._cluster.has_daemons:
      return
    lab = self._cluster.lab
    def all_attached() -> bool:
      return all(self._cluster.attached_processes(node) >= 1 for node in self._cluster.living_daemons())
    if wait_until(all_attached, self._patience.attach_s, 0.2):
      self._listener.detail("every rank is attached to its node's r2ccd")
      return
    problem = f"the plugin {self._cluster.binaries.plugin.name} did not attach to r2ccd"
    if lab.mode == "loopback":
      raise StoryBroken(f"{problem}, so that no fault can reach it without root")
    self._record.problems.append(problem)
    self._listener.detail(f"{problem}; going on without")

  def _stop_job(self, step: Step) -> None:
    del step
    job = self._require_job()
    job.ask_to_stop()
    if not job.wait(self._patience.stop_s):
      raise StoryBroken(f"job {self._jobs} did not end within {self._patience.stop_s:g} s of being asked to")
    job.follower.poll()
    self._job = None
    self._record.reports.append(job.report())
    self._record.problems += job.failures()
    report = self._record.reports[-1]
    self._mark(f"job {self._jobs} ends: {report.get('wrong_elements')} wrong elements, {report.get('late_writes')} late writes")

  def _require_job(self) -> Job:
    if self._job is None:
      raise StoryBroken("no job runs")
    return self._job

  def _check_alive(self) -> None:
    job = self._require_job()
    for node in range(self._cluster.lab.nodes):
      crash = self._cluster.crash_report(node)
      if crash is not None:
        raise StoryBroken(f"{crash}{self._since_last_fault()}")
    rank = job.dead_rank()
    if rank is None:
      return
    # What it had to say about it may be still on its way, and often another rank ended first.
    time.sleep(0.5)
    ended = [(index, process) for index, process in enumerate(job.ranks) if process.returncode not in (None, 0)]
    rank, process = ended[0] if ended else (rank, job.ranks[rank])
    raise StoryBroken(f"job {self._jobs} died{self._since_last_fault()}: "
                      f"rank {rank} ended with {process.returncode}: {process.last_lines()}")

  # Faults.

  def _cut_kind(self) -> str:
    return "fail-nic" if self._cluster.lab.mode == "loopback" else "link-down"

  def _fail_nic(self, rail: RailId) -> int:
    before_ns = monotonic_ns()
    self._cluster.fail_nic(rail)
    return before_ns

  def _restore_nic(self, rail: RailId) -> int:
    before_ns = monotonic_ns()
    self._cluster.restore_nic(rail)
    return before_ns

  def _strike(self, step: Step, break_rail: Callable[[RailId], int], kind: str) -> None:
    rail = _rail_of(step)
    words = _KIND_NAMES.get(kind, kind)
    if self._job is None:
      time_ns = break_rail(rail)
      self._mark(f"{rail}: {words}, before the job starts", time_ns)
      time.sleep(0.5)
      return
    self._wait_for_mid_iteration()
    self._job.fresh_output()
    time_ns = break_rail(rail)
    self._open_faults.append(Fault(kind, rail, self._jobs - 1, time_ns, phase=""))
    self._record.faults.append(self._open_faults[-1])
    self._mark(f"{rail}: {words} in mid-collective", time_ns)

  def _repair(self, step: Step, repair: Callable[[RailId], int]) -> None:
    rail = _rail_of(step)
    self._mark(f"{rail}: repaired", repair(rail))

  def _wait_for_mid_iteration(self) -> None:
    """Returns when rank 0 has moved the first part of an iteration and has a good part before it."""
    job = self._require_job()
    begin_ns = monotonic_ns()
    while (now_ns := monotonic_ns()) - begin_ns < self._patience.hang_s * 1e9:
      job.follower.poll()
      self._check_alive()
      strike = middle_of_iteration([row for row in job.follower.rows[-self._patience.recent_rows:] if row.rank == 0])
      if strike is not None and strike.begin_ns >= begin_ns:
        # Where iterations are shorter than the delay with which a trace is written, any moment with traffic must do.
        if now_ns <= strike.end_ns or now_ns - begin_ns > self._patience.aim_s * 1e9:
          time.sleep(max(0.0, (strike.begin_ns - monotonic_ns()) / 1e9))
          return
      time.sleep(0.005)
    raise StoryBroken(f"the job hangs{self._since_last_fault()}: it began no iteration for {self._patience.hang_s:g} s")

  # Time.

  def _stay(self, step: Step) -> None:
    job, lab = self._require_job(), self._cluster.lab
    begin_ns = monotonic_ns()
    before = lab.counters(0)
    self._watch(step.phase, step.seconds, lambda: False)
    after = lab.counters(0)
    window = Window(begin_ns, monotonic_ns())
    sent = {rail: after[rail].sent_bytes - before[rail].sent_bytes for rail in after}
    phase = Phase(step.phase, self._jobs - 1, window, sent)
    self._record.phases.append(phase)
    self._measure_faults(window.end_ns, step.phase)
    self._listener.phase_measured(phase, stalls.goodput_gbps(job.follower.rows, window))
    if step.phase == story.HEALTHY:
      self._check_rails_carry(sent)

  def _check_rails_carry(self, sent: dict[str, int]) -> None:
    """A fault on a rail that carries nothing would prove nothing."""
    idle = [rail for rail, size in sent.items() if size < self._patience.carried_bytes_min]
    if idle:
      self._record.problems.append(f"the plugin does not use {', '.join(idle)} of n0: nothing was sent there while healthy")

  def _recover(self, step: Step) -> None:
    healthy = self._record.bus_bandwidth_gbps(story.HEALTHY)
    rows, begin_ns = self._require_job().follower.rows, monotonic_ns()

    def recovered() -> bool:
      """Three whole iterations in a row as fast as when healthy, on average."""
      own = [row for row in rows if row.kind == "iteration" and row.rank == 0 and row.begin_ns >= begin_ns][-3:]
      speed = stalls.bus_bandwidth_gbps(own, Window(begin_ns, monotonic_ns()), self._cluster.lab.nodes)
      return len(own) == 3 and speed is not None and healthy is not None and speed >= RECOVERED_RATIO * healthy

    back = self._watch("coming back", step.seconds, recovered)
    seconds = (monotonic_ns() - begin_ns) / 1e9
    self._measure_faults(monotonic_ns(), "recovery")
    self._listener.detail(f"at full speed again {seconds:.1f} s after the repair" if back else
                          f"not at full speed again {seconds:.1f} s after the repair")

  def _rejoin(self, step: Step) -> None:
    begin_ns = monotonic_ns()
    before = self._cluster.lab.counters(0)

    def idle() -> list[str]:
      after = self._cluster.lab.counters(0)
      return [rail for rail in after if after[rail].sent_bytes - before[rail].sent_bytes < self._patience.carried_bytes_min]

    if self._watch("coming back", step.seconds, lambda: not idle()):
      self._listener.detail(f"all rails of n0 carry again {(monotonic_ns() - begin_ns) / 1e9:.1f} s after the repair")
    else:
      self._record.problems.append(f"{', '.join(idle())} of n0 does not carry again {step.seconds:g} s after the repair")
    self._measure_faults(monotonic_ns(), "coming back")

  def _watch(self, phase: str, seconds: float, done: Callable[[], bool]) -> bool:
    """Lets the job run, and notices when it dies or hangs; True: `done` ended it early."""
    job = self._require_job()
    deadline_s = time.monotonic() + seconds
    while (now_s := time.monotonic()) < deadline_s:
      time.sleep(min(TICK_S, deadline_s - now_s))
      job.follower.poll()
      self._check_alive()
      now_ns = monotonic_ns()
      recent = job.follower.rows[-self._patience.recent_rows:]
      self._listener.tick(phase, stalls.goodput_gbps(recent, Window(now_ns - 1_000_000_000, now_ns)))
      last_ns = stalls.last_completion_ns(recent)
      if last_ns is not None and now_ns - last_ns > self._patience.hang_s * 1e9:
        raise StoryBroken(f"the job hangs{self._since_last_fault()}: no rank completed anything for {self._patience.hang_s:g} s")
      if last_ns is not None and now_ns - last_ns > self._patience.standstill_s * 1e9:
        deadline_s = max(deadline_s, time.monotonic() + TICK_S)
      if done():
        return True
    return False

  def _measure_faults(self, end_ns: int, phase: str, check: bool = True) -> None:
    healthy = self._record.phase(story.HEALTHY)
    output = self._job.fresh_output() if self._job is not None and self._open_faults else ""
    for fault in self._open_faults:
      fault.phase = phase
      rows = self._record.traces[fault.job]
      if healthy is not None:
        measure(fault, rows, healthy.window, end_ns)
      if self._cluster.has_daemons:
        count_failovers(fault, self._own_events(), end_ns)
      else:
        count_logged_failovers(fault, output)
      if check and fault.failovers == 0:
        self._record.problems.append(f"{fault.rail}: {fault.kind}, and no job reported a failover")
      self._listener.fault_measured(fault)
    self._open_faults = []

  def _own_events(self) -> list[dict[str, Any]]:
    """What each daemon heard from its own node's job."""
    return [event for node in self._cluster.living_daemons() for event in self._cluster.events(node)
            if event.get("node") in ("", f"n{node}")]

  def _since_last_fault(self) -> str:
    if not self._record.faults:
      return ""
    fault = self._record.faults[-1]
    return f" since {fault.rail} was lost ({fault.kind})"

  def _compare(self, step: Step) -> None:
    del step
    self._mark(f"half of n0's rails are lost, rails of {comparison.RATE}: an all_reduce of {comparison.SIZE} by both ways")
    try:
      self._record.comparison = comparison.compare(self._cluster, COMPARED_ITERATIONS, self._listener.detail)
    except LabError as error:
      raise StoryBroken(str(error)) from error

  # Daemons.

  def _kill_daemon(self, step: Step) -> None:
    node = _node_of(step)
    self._mark(f"n{node}: r2ccd killed (SIGKILL) under the running job")
    self._cluster.kill_daemon(node)

  def _start_daemon(self, step: Step) -> None:
    node = _node_of(step)
    self._mark(f"n{node}: r2ccd started again")
    self._cluster.start_daemon(node)
    self._cluster.wait_ready(node)
    begin_s = time.monotonic()
    if wait_until(lambda: self._cluster.attached_processes(node) >= 1, self._patience.attach_s, TICK_S):
      self._listener.detail(f"the job on n{node} attached again {time.monotonic() - begin_s:.1f} s after r2ccd was ready")
    else:
      self._record.problems.append(f"the job on n{node} did not attach to its restarted r2ccd within {self._patience.attach_s:g} s")

  def _mark(self, text: str, time_ns: int | None = None) -> None:
    letter = chr(ord("A") + len(self._record.marks) % 26)
    mark = Mark(monotonic_ns() if time_ns is None else time_ns, letter, text)
    self._record.marks.append(mark)
    self._listener.mark(mark)


def _rail_of(step: Step) -> RailId:
  if step.rail is None:
    raise LabError(f"step {step.action.value} names no rail")
  return step.rail


def _node_of(step: Step) -> int:
  if step.node is None:
    raise LabError(f"step {step.action.value} names no node")
  return step.node
