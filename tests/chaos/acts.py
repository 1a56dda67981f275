"""How each kind of fault is done to a cluster, and undone."""

import contextlib
import dataclasses
import resource
import signal
import time
from typing import Callable, Protocol

from testing.lab.cluster import Job
from testing.lab.lab import LabError, RailId
from testing.lab.layout import rate_bits_per_s
from testing.lab.processes import ManagedProcess, Processes
from tests.chaos.script import Fault
from tests.chaos.world import ChaosCluster, ChaosLab, usage

_CTL_S = 15.0
_CTL_AGAIN_S = 1.0
_UNDO_S = 90.0
# A daemon or a rank that has started has more.
_STARTED_DESCRIPTORS = 25


class LeftOut(Exception):
  """A fault that has nothing to strike now; the text is the reason."""


class Act(Protocol):
  """One fault. Nothing here waits."""

  def begin(self) -> None: ...

  def go_on(self, now_s: float) -> None:
    """While it lasts."""
    ...

  def end(self) -> bool:
    """False: not done yet, to be called again."""
    ...


class Stage(Protocol):
  """What acts need of the run."""
  lab: ChaosLab
  cluster: ChaosCluster
  processes: Processes
  rate: str

  def running_job(self, slot: int) -> Job | None: ...

  def job_starts(self) -> bool: ...

  def rank_killed(self, slot: int) -> None: ...


@dataclasses.dataclass
class Simple:
  """Is there at once, and gone at once."""
  do: Callable[[], object]
  undo: Callable[[], object]

  def begin(self) -> None:
    self.do()

  def go_on(self, now_s: float) -> None:
    del now_s

  def end(self) -> bool:
    self.undo()
    return True


class Flap:
  """Down and up again, with a period."""

  def __init__(self, lab: ChaosLab, rail: RailId, half_s: float):
    self._lab, self._rail, self._half_s = lab, rail, half_s
    self._down = False
    self._next_s = 0.0

  def begin(self) -> None:
    self.go_on(time.monotonic())

  def go_on(self, now_s: float) -> None:
    if now_s >= self._next_s:
      (self._lab.heal if self._down else self._lab.cut)(self._rail)
      self._down = not self._down
      self._next_s = now_s + self._half_s

  def end(self) -> bool:
    self._lab.heal(self._rail)
    return True


class Swallow:
  """What the busiest connection of the rail gets from its peer is lost, and what both send of it alone."""

  def __init__(self, lab: ChaosLab, rail: RailId):
    self._lab, self._rail = lab, rail

  def begin(self) -> None:
    found = self._lab.connections(self._rail)
    if not found:
      raise LeftOut("no connection is open there")
    self._lab.lose(self._rail, f"tcp dport {found[0].local_port} tcp sport {found[0].peer_port}")

  def go_on(self, now_s: float) -> None:
    del now_s

  def end(self) -> bool:
    self._lab.lose_nothing(self._rail)
    return True


class OperatorSetting:
  """What an operator sets with r2ccctl and takes back, repeated until a daemon acknowledges it."""

  def __init__(self, stage: Stage, node: int, command: list[str], take_back: list[str]):
    self._stage, self._node, self._command, self._take_back = stage, node, command, take_back
    self._running: ManagedProcess | None = None
    self._since_s = self._undo_since_s = 0.0
    self.refused = ""

  def begin(self) -> None:
    self._start(self._command)

  def go_on(self, now_s: float) -> None:
    if self._running is not None and self._running.is_alive() and now_s - self._since_s > _CTL_S:
      self._running.kill()

  def end(self) -> bool:
    now_s = time.monotonic()
    if not self._undo_since_s:
      if self._running is not None and not self._running.is_alive() and self._running.returncode != 0:
        self.refused = self._running.last_lines(1)
      self._undo_since_s = now_s
      self._running = None
    self.go_on(now_s)
    if self._running is not None and self._running.is_alive():
      return False
    if self._running is not None and (self._running.returncode == 0 or "not drained" in self._running.errors()):
      return True
    if now_s - self._undo_since_s > _UNDO_S:
      output = self._running.last_lines() if self._running is not None else "no daemon lives"
      raise LabError(f"r2ccctl {' '.join(self._take_back)} failed for {_UNDO_S:g} s: {output}")
    if now_s - self._since_s > _CTL_AGAIN_S:
      self._start(self._take_back)
    return False

  def _start(self, arguments: list[str]) -> None:
    cluster = self._stage.cluster
    living = cluster.living_daemons()
    self._since_s = time.monotonic()
    if living:
      node = self._node if self._node in living else living[0]
      argv = [str(cluster.binaries.ctl), "--run_dir", str(cluster.run_dir(node)), *arguments]
      self._running = self._stage.processes.start(f"word-{'-'.join(arguments).replace('/', '_')}-{time.monotonic_ns()}", argv)


class DaemonGone:
  """It ends, and is started again later: killed outright, or asked to."""

  def __init__(self, cluster: ChaosCluster, node: int, killed: bool):
    self._cluster, self._node, self._killed = cluster, node, killed

  def begin(self) -> None:
    if self._killed:
      self._cluster.kill_daemon(self._node)
    else:
      self._cluster.ask_daemon_to_end(self._node)

  def go_on(self, now_s: float) -> None:
    del now_s

  def end(self) -> bool:
    if self._cluster.daemon(self._node).is_alive():
      return False
    self._cluster.start_daemon(self._node)
    return True


class OtherRelease:
  """A daemon is the other release's program for a while. Each change of it is a normal end and a start."""

  def __init__(self, cluster: ChaosCluster, node: int):
    self._cluster, self._node = cluster, node
    self._is_other = False
    self._ends = False

  def begin(self) -> None:
    self._cluster.ask_daemon_to_end(self._node)

  def go_on(self, now_s: float) -> None:
    del now_s
    if not self._is_other and not self._cluster.daemon(self._node).is_alive():
      self._cluster.start_other_release(self._node)
      self._is_other = True

  def end(self) -> bool:
    if self._is_other and not self._ends:
      if (words := self._cluster.crash_report(self._node)) is not None:
        raise LabError(f"the other release: {words}")
      self._cluster.ask_daemon_to_end(self._node)
      self._ends = True
    if self._cluster.daemon(self._node).is_alive():
      return False
    self._cluster.start_daemon(self._node)
    return True


class StopRank:

  def __init__(self, stage: Stage, fault: Fault):
    self._stage, self._fault = stage, fault
    self._rank: ManagedProcess | None = None

  def begin(self) -> None:
    self._rank = _rank(self._stage, self._fault)
    self._rank.pause()

  def go_on(self, now_s: float) -> None:
    del now_s

  def end(self) -> bool:
    if self._rank is not None:
      self._rank.resume()
    return True


def _kill_rank(stage: Stage, fault: Fault) -> None:
  rank = _rank(stage, fault)
  stage.rank_killed(fault.slot)
  rank.kill()


class FewDescriptors:
  """A process has as many descriptors as may be, so that it can open no other."""

  def __init__(self, process: Callable[[], ManagedProcess]):
    self._process = process
    self._pid = 0
    self._before = (0, 0)

  def begin(self) -> None:
    self._pid = self._process().pid
    now = usage(self._pid)
    if now is None or now.descriptors < _STARTED_DESCRIPTORS:
      raise LeftOut("the process starts")
    try:
      self._before = resource.prlimit(self._pid, resource.RLIMIT_NOFILE)
      resource.prlimit(self._pid, resource.RLIMIT_NOFILE, (1, self._before[1]))
    except OSError as error:
      raise LeftOut(f"the process is gone: {error}") from error

  def go_on(self, now_s: float) -> None:
    del now_s

  def end(self) -> bool:
    with contextlib.suppress(OSError):  # it has ended meanwhile
      resource.prlimit(self._pid, resource.RLIMIT_NOFILE, self._before)
    return True


def _rank(stage: Stage, fault: Fault) -> ManagedProcess:
  job = stage.running_job(fault.slot)
  if job is None:
    raise LeftOut("no job runs there")
  return job.ranks[fault.node]


def _management(stage: Stage, fault: Fault) -> None:
  if stage.job_starts():
    raise LeftOut("a job starts")
  stage.lab.silence_management(fault.node, True)


def act_of(fault: Fault, stage: Stage) -> Act:
  """What does `fault`."""
  lab, cluster = stage.lab, stage.cluster
  rail = RailId(fault.node, fault.rail)
  value = fault.value

  def share_of_rate() -> None:
    lab.reshape(rail, f"{rate_bits_per_s(stage.rate) * value / 1e6:g}mbit")

  def losing(match: str, outgoing: bool = False, verdict: str = "drop") -> Act:
    return Simple(lambda: lab.lose(rail, match, outgoing, verdict), lambda: lab.lose_nothing(rail, outgoing))

  nothing = lambda: None
  peer = RailId((fault.node + 1 + (int(value) - 1) % (lab.nodes - 1)) % lab.nodes, fault.rail)
  makers: dict[str, Callable[[], Act]] = {
      "cut": lambda: Simple(lambda: lab.cut(rail), lambda: lab.heal(rail)),
      "carrier": lambda: Simple(lambda: lab.cut_switch_port(rail), lambda: lab.heal_switch_port(rail)),
      "silence": lambda: Simple(lambda: lab.blackhole(rail), lambda: lab.unblackhole(rail)),
      "silence-in": lambda: losing(""),
      "silence-out": lambda: losing("", outgoing=True),
      "swallow": lambda: Swallow(lab, rail),
      "loss": lambda: losing(f"numgen random mod 100 < {value:g}"),
      "large": lambda: losing(f"meta length > {value:g}"),
      "mtu": lambda: Simple(lambda: lab.set_mtu(rail, int(value)), lambda: lab.set_mtu(rail)),
      "part": lambda: losing(f"ip saddr {lab.rail_address(peer)}"),
      "new-lost": lambda: losing("tcp flags & (syn | ack) == syn"),
      "reset": lambda: losing(f"meta l4proto tcp numgen random mod 10000 < {value:g}", verdict="reject with tcp reset"),
      "prohibited": lambda: losing("meta l4proto tcp", verdict="reject with icmp type admin-prohibited"),
      "route": lambda: Simple(lambda: lab.drop_route(rail), lambda: lab.take_route(rail)),
      "killed-connections": lambda: Simple(lambda: lab.end_connections(rail), nothing),
      "flap": lambda: Flap(lab, rail, value),
      "address": lambda: Simple(lambda: lab.drop_address(rail), lambda: lab.take_address(rail)),
      "reborn": lambda: Simple(lambda: lab.remove_interface(rail), lambda: lab.make_interface(rail)),
      "rate": lambda: Simple(share_of_rate, lambda: lab.reshape(rail, stage.rate)),
      "delay": lambda: Simple(lambda: lab.emulate(rail, f"delay {value:g}ms"), lambda: lab.reshape(rail, stage.rate)),
      "repeat": lambda: Simple(lambda: lab.emulate(rail, f"duplicate {value:g}%"), lambda: lab.reshape(rail, stage.rate)),
      "reorder": lambda: Simple(lambda: lab.emulate(rail, f"delay 10ms reorder {100 - value:g}%"), lambda: lab.reshape(rail, stage.rate)),
      "corrupt": lambda: Simple(lambda: lab.emulate(rail, f"corrupt {value:g}%"), lambda: lab.reshape(rail, stage.rate)),
      "member": lambda: Simple(lambda: lab.cut_below(rail, int(value)), lambda: lab.heal_below(rail, int(value))),
      "parent": lambda: Simple(lambda: lab.cut_below(rail, 0), lambda: lab.heal_below(rail, 0)),
      "drain": lambda: OperatorSetting(stage, fault.node, ["nic", "drain", str(rail)], ["nic", "undrain", str(rail)]),
      "drill": lambda: OperatorSetting(stage, fault.node, ["fail-nic", str(rail)], ["restore-nic", str(rail)]),
      "daemon-kill": lambda: DaemonGone(cluster, fault.node, killed=True),
      "daemon-stop": lambda: Simple(lambda: cluster.daemon(fault.node).pause(), lambda: cluster.daemon(fault.node).resume()),
      "daemon-restart": lambda: DaemonGone(cluster, fault.node, killed=False),
      "upgrade": lambda: OtherRelease(cluster, fault.node),
      "clock-back": lambda: Simple(lambda: lab.step_clock(fault.node, -value), lambda: lab.step_clock(fault.node, 0)),
      "clock-ahead": lambda: Simple(lambda: lab.step_clock(fault.node, value), lambda: lab.step_clock(fault.node, 0)),
      "reload": lambda: Simple(lambda: cluster.daemon(fault.node).send(signal.SIGHUP), nothing),
      "certificate": lambda: Simple(lambda: cluster.issue_certificate(fault.node), nothing),
      "disk-full": lambda: Simple(lambda: cluster.fill_disk(fault.node), lambda: cluster.empty_disk(fault.node)),
      "daemon-descriptors": lambda: FewDescriptors(lambda: cluster.daemon(fault.node)),
      "rank-descriptors": lambda: FewDescriptors(lambda: _rank(stage, fault)),
      "management-reset": lambda: Simple(lambda: lab.end_plugins_management(fault.node), nothing),
      "rank-stop": lambda: StopRank(stage, fault),
      "rank-kill": lambda: Simple(lambda: _kill_rank(stage, fault), nothing),
      "management-silence": lambda: Simple(lambda: _management(stage, fault), lambda: lab.silence_management(fault.node, False)),
      "store-stop": lambda: Simple(lambda: cluster.store().pause(), lambda: cluster.store().resume()),
      "store-kill": lambda: Simple(lambda: cluster.store().kill(), cluster.start_etcd),
  }
  return makers[fault.kind]()
