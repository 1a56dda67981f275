"""Does a script to real processes and judges what came of it."""

import json
import os
import pathlib
import signal
import subprocess
import time
from typing import Callable

from testing.lab.cluster import Job, JobOptions
from testing.lab.lab import LabError, monotonic_ns
from testing.lab.processes import Processes, wait_until
from testing.lab.traces import TraceFollower
from tests.chaos import judge
from tests.chaos.acts import Act, LeftOut, OperatorSetting, act_of
from tests.chaos.judge import FaultDone, JobDone, Run, Timeline, Usage
from tests.chaos.script import SLOTS, Fault, JobPlan, Script, may_begin
from tests.chaos.world import ChaosCluster, ChaosLab, usage

TICK_S, LOOK_S = 0.02, 0.25
# Twice R2CC_DEADLINE_MS: by then what cannot go on has said so.
HANG_S = 60.0
# A job whose rank was killed ends within the deadline and what the processes' end takes.
KILLED_S = 60.0
# TCP tries again so long after a silence that has ended.
MANAGEMENT_REST_S = 12.0
SETTLE_S = 8.0
HEALTHY_S = 90.0
_PERF_TIMEOUT_S = 300
_JOBS = {
    "ring": ("4M", "all_reduce", ()),
    "alltoall": ("1536K", "alltoall", ()),
    "collnet": ("2M", "all_reduce", ("--collnet", "--random", "29")),
    "small": ("12K", "all_reduce", ("-m", "16")),
}


class RunningJob:
  """A job of a slot, from its start to its end."""

  def __init__(self, number: int, plan: JobPlan, job: Job, begin_s: float, now_s: float):
    self.plan, self.job = plan, job
    self.done = JobDone(job.name, plan.kind, round(begin_s, 1), 0)
    self.number = number
    self.started_s = self.moved_s = now_s
    self.first_s = 0.0  # when its first iteration had ended
    self.asked_s = 0.0  # to stop
    self.timeline = Timeline()
    self.first_usage: dict[int, Usage] = {}
    self.last_usage: dict[int, Usage] = {}


class Chaos:
  """One run."""

  def __init__(self, script: Script, cluster: ChaosCluster, processes: Processes, rate: str, environment: dict[str, str],
               print_line: Callable[[str], None]):
    assert isinstance(cluster.lab, ChaosLab)
    self.lab, self.cluster, self.processes, self.rate = cluster.lab, cluster, processes, rate
    self._script, self._environment, self._print_line = script, environment, print_line
    self.run = Run(script.seed)
    self._jobs: list[RunningJob | None] = [None] * SLOTS
    self._plans = [[plan for plan in script.jobs if plan.slot == slot] for slot in range(SLOTS)]
    self._slot_free_s = [0.0] * SLOTS
    self._number = 0
    self._active: list[tuple[Fault, Act, FaultDone]] = []
    self._timelines: list[Timeline] = []
    self._management_until_s = 0.0
    self._begin_s = time.monotonic()
    self._last_look_s = 0.0

  # What acts ask.

  def running_job(self, slot: int) -> Job | None:
    running = self._jobs[slot]
    return running.job if running is not None and running.first_s and not running.asked_s and not running.done.killed else None

  def job_starts(self) -> bool:
    return any(running is not None and not running.first_s for running in self._jobs)

  def rank_killed(self, slot: int) -> None:
    running = self._jobs[slot]
    assert running is not None
    running.done.killed = True
    running.asked_s = time.monotonic()

  # The run.

  def go(self) -> Run:
    self.cluster.start_daemons()
    self._warm_up()
    before = self._daemon_usage()
    self._begin_s = time.monotonic()
    pending = list(self._script.faults)
    while (now_s := self._now_s()) < self._script.seconds or self._active or any(self._jobs):
      self._end_faults(now_s)
      while pending and pending[0].at_s <= now_s:
        self._begin_fault(pending.pop(0))
      for fault, act, _ in self._active:
        if now_s < fault.end_s:
          act.go_on(time.monotonic())
      if now_s - self._last_look_s >= LOOK_S:
        self._last_look_s = now_s
        self._look_at_jobs(now_s)
        self._look_at_daemons()
      time.sleep(TICK_S)
    self.run.minutes = self._now_s() / 60
    self.run.measure(self._timelines)
    self._judge_cluster(before)
    return self.run

  def _now_s(self) -> float:
    return time.monotonic() - self._begin_s

  def _warm_up(self) -> None:
    """One job, so that what a daemon makes for its first one is no growth."""
    job = self.cluster.start_job("warm-up", JobOptions(size="1M", seconds_max=2, timeout_s=_PERF_TIMEOUT_S))
    if not job.wait(HANG_S) or job.failures():
      raise LabError(f"a job without a fault does not end well: {' / '.join(job.failures()) or 'it hangs'}")
    time.sleep(SETTLE_S)

  # Faults.

  def _begin_fault(self, fault: Fault) -> None:
    done = FaultDone(fault.text(), fault.at_s, fault.for_s, monotonic_ns(), 0)
    self.run.late_s_worst = max(self.run.late_s_worst, self._now_s() - fault.at_s)
    self.run.faults.append(done)
    try:
      if not may_begin(fault, [other for other, _, _ in self._active], self._script.shape):
        raise LeftOut("the one before it has not ended")
      act = act_of(fault, self)
      act.begin()
      self._active.append((fault, act, done))
    except LeftOut as reason:
      done.note, done.end_ns = str(reason), monotonic_ns()
    except LabError as error:
      done.note, done.end_ns = str(error), monotonic_ns()
      self.run.rig.append(f"{fault.text()} at {fault.at_s:g} s: {error}")
    self._print_line(f"{fault.at_s:7.1f} s  {fault.text()} for {fault.for_s:.2f} s {done.note}")

  def _end_faults(self, now_s: float) -> None:
    for entry in sorted(self._active, key=lambda each: each[0].end_s):
      fault, act, done = entry
      if now_s < fault.end_s:
        break
      if not done.end_ns:
        done.end_ns = monotonic_ns()
        self.run.late_s_worst = max(self.run.late_s_worst, now_s - fault.end_s)
      try:
        if not act.end():
          continue
      except LabError as error:
        self.run.rig.append(f"the end of {fault.text()} at {fault.end_s:g} s: {error}")
      if isinstance(act, OperatorSetting) and act.refused:
        done.note = f"refused: {act.refused}"
      if fault.kind == "management-silence":
        self._management_until_s = now_s + MANAGEMENT_REST_S
      self._active.remove(entry)

  # Jobs.

  def _look_at_jobs(self, now_s: float) -> None:
    for slot in range(SLOTS):
      running = self._jobs[slot]
      if running is not None:
        self._look_at_job(slot, running, now_s)
      elif self._plans[slot] and self._plans[slot][0].at_s <= now_s and self._slot_free_s[slot] <= now_s:
        if not any(fault.kind == "management-silence" for fault, _, _ in self._active) and now_s >= self._management_until_s:
          self._start_job(slot, self._plans[slot].pop(0), now_s)

  def _start_job(self, slot: int, plan: JobPlan, now_s: float) -> None:
    self._number += 1
    size, collective, flags = _JOBS[plan.kind]
    # Those that exist: an interface may be gone when a job begins. A channel for each, on all ranks.
    environment = {"R2CC_LOG": "info", "R2CC_RAILS": "~" + self.lab.rails_variable(0)} | plan.environment | self._environment
    flags = (*flags, *(() if "--collnet" in flags else ("--channels", str(self.lab.rails))), "--debug", "--progress", "0")
    options = JobOptions(size, collective, self._script.seconds + 3600, _PERF_TIMEOUT_S, environment, flags)
    job = self.cluster.start_job(f"job{self._number}", options)
    # What one rank waits for all wait for, and a busy machine has no time to read a row of each message of each rank.
    job.follower = TraceFollower(self.processes.logs / f"{job.name}-trace", 1)
    running = RunningJob(self._number, plan, job, now_s, now_s)
    self._jobs[slot] = running
    self._timelines.append(running.timeline)
    self._print_line(f"{now_s:7.1f} s  {job.name} begins: {plan.kind} for {plan.for_s:.0f} s {plan.environment or ''}")

  def _look_at_job(self, slot: int, running: RunningJob, now_s: float) -> None:
    job, done = running.job, running.done
    rows = job.follower.poll()
    job.follower.rows.clear()
    running.timeline.take(rows)
    iterations = sum(1 for row in rows if row.kind == "iteration" and row.rank == 0)
    done.iterations += iterations
    running.first_s = running.first_s or (now_s if done.iterations else 0.0)
    if rows or self._excused(slot, now_s):
      running.moved_s = now_s
    if running.first_s and not running.last_usage and now_s > running.first_s + SETTLE_S:
      running.first_usage = running.last_usage = self._rank_usage(job)
    if all(not rank.is_alive() for rank in job.ranks):
      self._end_job(slot, running, now_s)
    elif running.asked_s and done.killed and time.monotonic() - running.asked_s > KILLED_S and not self._excused(slot, now_s):
      self._hung(slot, running, f"a rank was killed, and others run {KILLED_S:g} s later", now_s)
    elif now_s - running.moved_s > HANG_S:
      self._hung(slot, running, f"nothing completed for {HANG_S:g} s" + (", after it was asked to stop" if running.asked_s else ""), now_s)
    elif not running.asked_s and running.first_s and self._is_over(running, now_s):
      running.last_usage = self._rank_usage(job) or running.last_usage
      running.asked_s = time.monotonic()
      job.ask_to_stop()

  def _is_over(self, running: RunningJob, now_s: float) -> bool:
    return now_s >= min(running.started_s + running.plan.for_s, self._script.seconds)

  def _excused(self, slot: int, now_s: float) -> bool:
    """A job need not move: one of its ranks is stopped, or its ranks cannot agree on an end, as that goes by the management network."""
    kinds = {fault.kind for fault, _, _ in self._active if fault.slot in (-1, slot)}
    return "rank-stop" in kinds or "management-silence" in kinds or now_s < self._management_until_s

  def _hung(self, slot: int, running: RunningJob, words: str, now_s: float) -> None:
    running.done.hung = words
    self._print_line(f"{now_s:7.1f} s  {running.done.name} HANGS: {words}")
    for rank, process in enumerate(running.job.ranks):
      self._write_stacks(f"{running.done.name}-rank{rank}", rank, process.pid)
    running.job.kill()
    self._end_job(slot, running, now_s)

  def _write_stacks(self, name: str, node: int, pid: int) -> None:
    """What a process that hangs does, and its connections, beside its logs."""
    with open(self.processes.logs / f"{name}.hung", "wb") as file:
      for argv in (["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace"], self.lab.command(node, ["ss", "-tinpeO"])):
        try:
          subprocess.run(argv, stdout=file, stderr=file, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
          file.write(f"{argv[0]}: {error}\n".encode())

  def _end_job(self, slot: int, running: RunningJob, now_s: float) -> None:
    job, done = running.job, running.done
    done.seconds = round(now_s - running.started_s, 1)
    done.failures = job.failures()
    if not done.hung and not done.killed:
      try:
        report = job.report()
        done.wrong_elements, done.late_writes = report["wrong_elements"], report["late_writes"]
        done.checked = bool(report["checked"]) and done.iterations > 0
      except (LabError, KeyError) as error:
        done.failures.append(str(error))
      if not running.asked_s:
        done.failures.append("it ended before it was asked to")
    for rank, last in running.last_usage.items() if slot == 0 else ():
      first = running.first_usage[rank]
      self.run.usage[f"{done.name} rank {rank} ({done.kind})"] = (first, last)
      self.run.growth += judge.growth(f"{done.name} rank {rank} ({done.kind})", first, last, judge.RANK_RSS_MORE_KB)
    self.run.jobs.append(done)
    problems = done.problems()
    if not problems:
      for path in self.processes.logs.glob(f"{job.name}-trace.*"):
        path.unlink()
    self._jobs[slot] = None
    self._slot_free_s[slot] = now_s + 0.5
    self._print_line(f"{now_s:7.1f} s  {done.name} ended: {problems[0] if problems else 'killed' if done.killed else 'right'}")

  def _rank_usage(self, job: Job) -> dict[int, Usage]:
    found = {rank: usage(process.pid) for rank, process in enumerate(job.ranks)}
    return {rank: one for rank, one in found.items() if one is not None}

  # Daemons.

  def _daemon_usage(self) -> dict[int, Usage]:
    found = {node: usage(self.cluster.daemon(node).pid) for node in range(self.lab.nodes)}
    return {node: one for node, one in found.items() if one is not None}

  def _look_at_daemons(self) -> None:
    for node in range(self.lab.nodes):
      if (words := self.cluster.crash_report(node)) is not None and words not in self.run.daemons:
        self.run.daemons.append(words)
        self._print_line(words)

  def _not_healthy(self) -> list[str]:
    """What some daemon says of a NIC although nothing is wrong with it."""
    found = []
    for node in range(self.lab.nodes):
      try:
        listed = self.cluster.ctl_json(node, "nic", "list").get("nodes", [])
        found += [f"n{node} does not know n{other}" for other in range(self.lab.nodes)
                  if sum(1 for each in listed if each["node"] == f"n{other}" for _ in each.get("nics", [])) != self.lab.rails]
        found += [f"n{node} has {each['node']}/{nic['name']} as {nic['state']}" + (", drained" if nic.get("drained") else "")
                  for each in listed for nic in each.get("nics", []) if nic["state"] != "HEALTHY" or nic.get("drained")]
      except LabError as error:
        found.append(str(error))
    return found

  def _judge_cluster(self, before: dict[int, Usage]) -> None:
    """All faults have been undone and all jobs have ended: nothing may be left of them."""
    run = self.run
    if not wait_until(lambda: not self._not_healthy(), HEALTHY_S, 1.0):
      run.daemons += [f"{HEALTHY_S:g} s after the last fault {line}" for line in self._not_healthy()]
    time.sleep(SETTLE_S)
    for node, last in self._daemon_usage().items():
      run.usage[f"r2ccd of n{node}"] = (before[node], last)
      run.growth += judge.growth(f"r2ccd of n{node}", before[node], last, judge.DAEMON_RSS_MORE_KB)
    self._look_at_daemons()
    for node in range(self.lab.nodes):
      daemon = self.cluster.daemon(node)
      daemon.send(signal.SIGTERM)
      if daemon.wait(HANG_S) is None:
        run.daemons.append(f"r2ccd of n{node} does not end within {HANG_S:g} s of being asked to")
      elif daemon.returncode != 0:
        run.daemons.append(f"r2ccd of n{node} ended with {daemon.returncode}: {daemon.last_lines(1)}")
    run.left += self.cluster.files_left()


def shared_memory() -> set[str]:
  """Files that a process may leave in memory."""
  return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def judge_machine(run: Run, lab: ChaosLab, shared_before: set[str]) -> None:
  """After all of it: whether the machine is as before."""
  run.left += [f"/dev/shm/{name}" for name in sorted(shared_memory() - shared_before) if "r2cc" in name]
  names = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
  run.left += [f"namespace {name}" for name in names if name.startswith(lab.prefix + "-")]


def write_reports(run: Run, folder: pathlib.Path) -> None:
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "chaos.md").write_text(run.markdown(), encoding="utf-8")
  (folder / "chaos.json").write_text(json.dumps(run.json_object(), indent=1) + "\n", encoding="utf-8")
