"""The cluster that chaos breaks: a lab whose rails change, daemons with certificates and small disks, and perhaps an etcd."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import struct
import subprocess
from typing import Iterator, Sequence

from testing.lab.binaries import built_file

from testing.lab.cluster import Binaries, Cluster
from testing.lab.lab import LabError, RailId
from testing.lab.layout import RAIL_MTU, rate_bits_per_s
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes, clean_environment
from tests.chaos.judge import Usage
from tests.chaos.links import LinkLayout, missing_link
from tests.chaos.script import Shape

ETCD = "/usr/bin/etcd"
# Of the rig: on a machine that is busy for its processes, faults have to begin and end in time.
PRIORITY = -10
_ETCD_PORT = 2379
# Plugins have the kernel's ephemeral ports at both ends; the rig gives out others for the rest.
_PLUGINS_FIRST_PORT = 32768
_COMMAND_TIMEOUT_S = 20
# More than all files of the state directory may have together.
_DISK_SIZE = "128m"
# What a daemon that has ended on purpose leaves where it ran: the rails for jobs that start before the next one does, and its lock.
_KEPT_FILES = {"r2ccd.textproto", "kept", "rails"}
# 0.2.0 has its lock there, too.
_KEPT_OF_OTHER_RELEASE = {"r2ccd.lock"}
_KEPT_CONTROL_FILES = {"r2ccd.lock"}


def run(argv: list[str]) -> str:
  """Its output. LabError: it failed."""
  try:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False, env=clean_environment({}))
  except (OSError, subprocess.TimeoutExpired) as error:
    raise LabError(f"{' '.join(argv)}: {error}") from error
  if done.returncode != 0:
    raise LabError(f"{' '.join(argv)}: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
  return done.stdout


class ChaosLab(NamespaceLab):
  """Rails whose addresses, MTUs and interfaces change, and nodes with clocks of their own. `folder` has the clocks."""

  def __init__(self, shape: Shape, rate: str, folder: pathlib.Path):
    super().__init__(shape.nodes, shape.rails, rate, shape.fabric)
    self._layout = LinkLayout(**dataclasses.asdict(self._layout), links=shape.links)
    self._strict_arp = shape.strict_arp
    self._rate = rate
    self._other_address: set[RailId] = set()  # those that have their second address
    self._clocks = folder / "clocks"

  def _make(self) -> None:
    if (reason := missing_link(self._layout.links)) is not None:
      raise LabError(reason)
    super()._make()
    self._clocks.mkdir()
    for node in range(self.nodes):
      self.step_clock(node, 0)
    for node in range(self.nodes) if self._strict_arp else ():
      settings = "cd /proc/sys/net/ipv4/conf/all && echo 1 > arp_ignore && echo 2 > arp_announce"
      run(self.command(node, ["sh", "-c", settings]))

  @property
  def prefix(self) -> str:
    """Of the names of its namespaces."""
    return self._layout.prefix

  def rail_address(self, rail: RailId) -> str:
    first = super().rail_address(rail)
    head, _, last = first.rpartition(".")
    return f"{head}.{int(last) + 100}" if rail in self._other_address else first

  def drop_address(self, rail: RailId) -> None:
    self._on_node(rail, "ip", "address", "flush", "dev", f"rail{rail.rail}")
    self._other_address ^= {rail}

  def take_address(self, rail: RailId) -> None:
    """The other of its two."""
    self._on_node(rail, "ip", "address", "add", f"{self.rail_address(rail)}/24", "dev", f"rail{rail.rail}")

  def drop_route(self, rail: RailId) -> None:
    self._on_node(rail, "ip", "route", "delete", self._network(rail), "dev", f"rail{rail.rail}")

  def take_route(self, rail: RailId) -> None:
    route = ["dev", f"rail{rail.rail}", "src", self.rail_address(rail), "scope", "link"]
    self._on_node(rail, "ip", "route", "add", self._network(rail), *route)

  def _network(self, rail: RailId) -> str:
    return self.rail_address(rail).rpartition(".")[0] + ".0/24"

  def end_connections(self, rail: RailId) -> None:
    """Both ends of each hear of it: this one at once, the other when it sends."""
    self._on_node(rail, "ss", "--kill", "--tcp", "src", self.rail_address(rail))

  def end_plugins_management(self, node: int) -> None:
    """Those connections of the management network that have no port of r2cc-perf's, r2ccd's or etcd's."""
    first = f":{_PLUGINS_FIRST_PORT}"
    run(self.command(node, ["ss", "--kill", "--tcp", "src", self.management_address(node), "sport", "ge", first, "dport", "ge", first]))

  def step_clock(self, node: int, ahead_s: float) -> None:
    """The time of day of the node's processes is so far ahead of the machine's."""
    file = os.open(self._clock(node), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
      os.pwrite(file, struct.pack("<q", round(ahead_s * 1e9)), 0)  # at once, as it is mapped
    finally:
      os.close(file)

  def _clock(self, node: int) -> pathlib.Path:
    return self._clocks / f"n{node}"

  def cut_below(self, rail: RailId, part: int) -> None:
    """One of the interfaces that the rail is made of."""
    self._on_node(rail, "ip", "link", "set", "dev", self._layout.below(rail)[part], "down")

  def heal_below(self, rail: RailId, part: int) -> None:
    self._on_node(rail, "ip", "link", "set", "dev", self._layout.below(rail)[part], "up")

  def emulate(self, rail: RailId, what: str) -> None:
    """Words of netem for what the node sends, at the rail's own rate, until reshape()."""
    # 4 MB of packets at the rail's MTU: more than what is under way.
    self._on_node(rail, "tc", "qdisc", "replace", "dev", f"rail{rail.rail}", "root", "netem", "limit", "500", "rate",
                  f"{rate_bits_per_s(self._rate):g}bit", *what.split())

  def set_mtu(self, rail: RailId, mtu: int = RAIL_MTU) -> None:
    self._on_node(rail, "ip", "link", "set", "dev", f"rail{rail.rail}", "mtu", str(mtu))

  def remove_interface(self, rail: RailId) -> None:
    """The cable goes with it."""
    self._on_node(rail, "ip", "link", "delete", f"rail{rail.rail}")

  def make_interface(self, rail: RailId) -> None:
    """With its first address, and its own rate."""
    layout = self._layout
    self._other_address.discard(rail)
    self._in(layout.fabric_namespace, "ip", layout.cable_commands(rail))
    self._in(layout.namespace(rail.node), "ip", layout.rail_commands(rail))
    self.reshape(rail, self._rate)

  def command(self, node: int, argv: Sequence[str]) -> list[str]:
    """What runs for long leaves the rig's own priority to it, and has the node's clock."""
    clock = ["env", f"LD_PRELOAD={built_file('tests/chaos/libclock_steps.so')}", f"R2CC_CHAOS_CLOCK={self._clock(node)}"]
    return ["nice", "-n", str(-PRIORITY), *super().command(node, [*clock, *argv])]

  def _on_node(self, rail: RailId, *argv: str) -> None:
    run(super().command(rail.node, list(argv)))


class ChaosCluster(Cluster):
  """Its daemons know each other by certificates. `etcd`: they share a store of its; else n0 has it. `other_daemon`: r2ccd of another
  release."""

  def __init__(self, lab: ChaosLab, binaries: Binaries, folder: pathlib.Path, processes: Processes, etcd: bool,
               other_daemon: pathlib.Path | None = None):
    super().__init__(lab, binaries, folder, processes, tls=True)
    self._other_daemon = other_daemon
    self._root = folder
    self._own_processes = processes
    self._etcd_starts = 0
    self.etcd: ManagedProcess | None = None
    if etcd:
      self.start_etcd()

  def config_text(self, node: int) -> str:
    """A NIC is an interface here, whatever its address."""
    lines = []
    for line in super().config_text(node).splitlines():
      if line.startswith("nics "):
        head, _, tail = line.partition(" address: ")
        line = head + tail.partition('"')[2].partition('"')[2]
      elif line.startswith("store ") and self.etcd is not None:
        line = f'store {{ etcd_endpoints: "{self.lab.management_address(0)}:{_ETCD_PORT}" }}'
      lines.append(line)
    return "\n".join(lines) + "\n"

  def start_etcd(self) -> None:
    """In n0's namespace; again with what it knew."""
    if not os.path.exists(ETCD):
      raise LabError(f"there is no {ETCD}: ./bazelw installs it")
    self._etcd_starts += 1
    client, peer = f"http://{self.lab.management_address(0)}:{_ETCD_PORT}", f"http://127.0.0.1:{_ETCD_PORT + 1}"
    argv = [ETCD, "--name", "one", "--data-dir", str(self._root / "etcd"), "--listen-client-urls", client, "--advertise-client-urls",
            client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}"]
    self.etcd = self._own_processes.start(f"etcd-{self._etcd_starts}", self.lab.command(0, argv))

  def store(self) -> ManagedProcess:
    if self.etcd is None:
      raise LabError("this cluster has no etcd")
    return self.etcd

  def start_other_release(self, node: int) -> None:
    """In the place of a daemon that has ended."""
    assert self._other_daemon is not None
    own = self.binaries
    self.binaries = dataclasses.replace(own, daemon=self._other_daemon)
    try:
      self.start_daemon(node)
    finally:
      self.binaries = own

  def ask_daemon_to_end(self, node: int) -> None:
    """It has until it is started again."""
    self._killed.add(node)
    self.daemon(node).send(signal.SIGTERM)

  def issue_certificate(self, node: int) -> None:
    """Another one for the same node; a daemon that runs takes it within seconds."""
    run([str(self.binaries.ctl), "certs", "issue", f"n{node}", "--dir", str(self._root / "ca")])

  def disk(self, node: int) -> pathlib.Path:
    """Of the state directory."""
    return self.run_dir(node) / "kept"

  @contextlib.contextmanager
  def small_disks(self) -> Iterator[None]:
    """Each state directory is a file system of its own, of a size that is soon full. Inside of it daemons may be started."""
    with contextlib.ExitStack() as stack:
      for node in range(self.lab.nodes):
        self.disk(node).mkdir(parents=True)
        run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_SIZE},mode=0755", "r2cc-chaos", str(self.disk(node))])
        stack.callback(run, ["umount", "--lazy", str(self.disk(node))])
      yield

  def fill_disk(self, node: int) -> None:
    """To the last byte."""
    with open(self.disk(node) / "ballast", "ab", buffering=0) as file:
      for size in (1 << 20, 4096):
        with contextlib.suppress(OSError):
          while file.write(bytes(size)) == size:
            pass

  def empty_disk(self, node: int) -> None:
    (self.disk(node) / "ballast").unlink()

  def files_left(self) -> list[str]:
    """Once all daemons have ended as they were asked to."""
    found = []
    kept = _KEPT_FILES | (_KEPT_OF_OTHER_RELEASE if self._other_daemon is not None else set())
    for node in range(self.lab.nodes):
      run_dir = self.run_dir(node)
      found += [str(path.relative_to(self._root)) for path in run_dir.iterdir() if path.name not in kept]
      found += [str(path.relative_to(self._root)) for path in self.disk(node).rglob("*") if path.suffix in (".tmp", ".new", ".part")]
      control = run_dir.with_name(run_dir.name + "-control")
      found += [str(path.relative_to(self._root)) for path in control.iterdir() if path.name not in _KEPT_CONTROL_FILES]
    return sorted(found)


def usage(pid: int) -> Usage | None:
  """Of a process that runs; None: it does not."""
  try:
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines())
    return Usage(len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]), int(status["VmRSS"].split()[0]))
  except (OSError, KeyError, ValueError):
    return None


def has_etcd() -> bool:
  return shutil.which(ETCD) is not None
