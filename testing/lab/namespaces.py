"""Emulates nodes as network namespaces: real interfaces, real link events, shaped rails. Needs root, iproute2, veth, bridge and tbf."""

import concurrent.futures
import dataclasses
import itertools
import json
import os
import re
import subprocess
from types import TracebackType
from typing import Sequence

from testing.lab.lab import Counters, LabError, RailId, monotonic_ns
from testing.lab.layout import Layout, owner_pid, rate_bits_per_s
from testing.lab.netns_socket import NetnsSocket

_COMMAND_TIMEOUT_S = 20


@dataclasses.dataclass(frozen=True)
class Connection:
  """A TCP connection, as the kernel of one end reports it."""
  local_port: int
  peer_port: int
  acked_bytes: int


_serials = itertools.count()


def missing_feature() -> str | None:
  """Why this machine cannot have a NamespaceLab, in one line; None: it can."""
  if os.geteuid() != 0:
    return "not root"
  try:
    with NamespaceLab(nodes=1, rails=1, rate="500mbit"):
      return None
  except LabError as error:
    return str(error)


def sweep() -> list[str]:
  """Removes what dead owners left behind (a killed drill cannot clean up) and returns what that was."""
  try:
    names = os.listdir("/run/netns")
  except FileNotFoundError:
    return []
  dead = [name for name in names if (pid := owner_pid(name)) is not None and not os.path.exists(f"/proc/{pid}")]
  if dead:
    _run(["ip", "-force", "-batch", "-"], "\n".join(f"netns del {name}" for name in dead), check=False)
  return dead


class NamespaceLab:
  """A context manager: the namespaces exist inside it, and not after it, however it ends."""

  mode = "namespaces"

  def __init__(self, nodes: int = 4, rails: int = 4, rate: str | None = "500mbit", fabric: str = "rail"):
    self._layout = Layout(nodes=nodes, rails=rails, fabric=fabric, rate=rate, owner=os.getpid(), serial=next(_serials))
    self._sockets: dict[str, NetnsSocket] = {}
    self.nodes, self.rails = nodes, rails
    self.rate_gbps = rails * rate_bits_per_s(rate) / 1e9 if rate else None

  def __enter__(self) -> "NamespaceLab":
    try:
      self._make()
    except BaseException:
      self._remove()
      raise
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    self._remove()

  def _make(self) -> None:
    layout = self._layout
    names = layout.namespaces()
    _run(["ip", "-batch", "-"], "\n".join(f"netns add {name}" for name in names))
    for name in names:
      settings = " && ".join(f"echo {value} > /proc/sys/{path}" for path, value in layout.sysctls().items() if
                             os.path.exists(f"/proc/sys/{path}"))
      if settings:
        _run(["ip", "netns", "exec", name, "sh", "-c", settings])
    self._in(layout.fabric_namespace, "ip", layout.fabric_commands())
    # There is one network lock in the kernel, but the start of programs needs no lock.
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
      list(pool.map(self._make_node, range(self.nodes)))
    all_ports = [layout.port(rail) for node in range(self.nodes) for rail in layout.rails_of(node)]
    self._in(layout.fabric_namespace, "tc", [line for port in all_ports for line in layout.shape_commands(port, layout.rate)])
    for name in names:
      _run(["ip", "netns", "exec", name, "sh", "-c", layout.steering_script(name, os.cpu_count() or 1)])
    self._sockets = {name: NetnsSocket(name) for name in names}

  def _make_node(self, node: int) -> None:
    layout = self._layout
    self._in(layout.namespace(node), "ip", layout.node_commands(node))
    self._in(layout.namespace(node), "tc", [line for rail in layout.rails_of(node) for line in
                                            layout.shape_commands(f"rail{rail.rail}", layout.rate)])

  def _remove(self) -> None:
    for link_socket in self._sockets.values():
      link_socket.close()
    self._sockets = {}
    present = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
    ours = [name for name in self._layout.namespaces() if name in present]
    if ours:
      _run(["ip", "-force", "-batch", "-"], "\n".join(f"netns del {name}" for name in ours), check=False)

  def namespace(self, node: int) -> str:
    return self._layout.namespace(node)

  @property
  def fabric_namespace(self) -> str:
    """The namespace of all switches."""
    return self._layout.fabric_namespace

  def switch_port(self, rail: RailId) -> str:
    """The interface there at the other end of `rail`'s cable."""
    return self._layout.port(rail)

  def management_address(self, node: int) -> str:
    return self._layout.management_address(node)

  def management_interface(self, node: int) -> str:
    del node
    return "mgmt0"

  def rail_address(self, rail: RailId) -> str:
    return self._layout.rail_address(rail)

  def rails_variable(self, node: int) -> str:
    return ",".join(f"rail{rail.rail}" for rail in self._layout.rails_of(node))

  def command(self, node: int, argv: Sequence[str]) -> list[str]:
    return ["ip", "netns", "exec", self._layout.namespace(node), *argv]

  def free_port(self, node: int) -> int:
    del node
    self._port = getattr(self, "_port", 20000) + 1  # no other process is in the node's namespace
    return self._port

  def cut(self, rail: RailId) -> int:
    """Takes the interface itself down: the node gets a link event, its peers get silence."""
    return self._node_socket(rail).set_link(f"rail{rail.rail}", up=False)

  def heal(self, rail: RailId) -> int:
    before_ns = self._node_socket(rail).set_link(f"rail{rail.rail}", up=True)
    if routes := self._layout.route_commands(rail):
      self._in(self._layout.namespace(rail.node), "ip", routes)
    return before_ns

  def cut_switch_port(self, rail: RailId) -> int:
    """Takes the far end of the cable down: the node loses its carrier."""
    return self._sockets[self._layout.fabric_namespace].set_link(self._layout.port(rail), up=False)

  def heal_switch_port(self, rail: RailId) -> int:
    return self._sockets[self._layout.fabric_namespace].set_link(self._layout.port(rail), up=True)

  def blackhole(self, rail: RailId) -> int:
    """Takes the far end of the cable out of its bridge: silence in both directions, and no event anywhere."""
    return self._sockets[self._layout.fabric_namespace].set_port(self._layout.bridge(rail.rail), self._layout.port(rail), member=False)

  def unblackhole(self, rail: RailId) -> int:
    return self._sockets[self._layout.fabric_namespace].set_port(self._layout.bridge(rail.rail), self._layout.port(rail), member=True)

  def part(self, one: RailId, other: RailId) -> int:
    """Breaks only the path between two ports of a rail: isolated ports of a bridge do not reach each other."""
    return self._isolate((one, other), True)

  def join(self, one: RailId, other: RailId) -> int:
    """Undoes part()."""
    return self._isolate((one, other), False)

  def _isolate(self, rails: Sequence[RailId], isolated: bool) -> int:
    before_ns = monotonic_ns()
    self._in(self._layout.fabric_namespace, "ip",
             [f"link set dev {self._layout.port(rail)} type bridge_slave isolated {'on' if isolated else 'off'}" for rail in rails])
    return before_ns

  def reshape(self, rail: RailId, rate: str) -> int:
    """Makes a grey rail: another rate in both directions, and no event."""
    rate_bits_per_s(rate)
    before_ns = monotonic_ns()
    self._in(self._layout.namespace(rail.node), "tc", self._layout.shape_commands(f"rail{rail.rail}", rate))
    self._in(self._layout.fabric_namespace, "tc", self._layout.shape_commands(self._layout.port(rail), rate))
    return before_ns

  def lose(self, rail: RailId, match: str, outgoing: bool = False, verdict: str = "drop") -> int:
    """Loses incoming packets of `rail` for which `match`, an expression of nft, is true; an empty one is true for all. With `outgoing`,
    loses those that the node has sent: the switch's port drops them, so that the sender does not notice. `verdict`: what nft does with them
    instead. lose_nothing() undoes it."""
    before_ns = monotonic_ns()
    table, namespace, device = self._loss(rail, outgoing)
    rules = [f"add table {table}", f"add chain {table} lose {{ type filter hook ingress device {device} priority 0; }}",
             f"add rule {table} lose {match} counter {verdict}"]
    _run(["ip", "netns", "exec", namespace, "nft", "-f", "-"], "\n".join(rules))
    return before_ns

  def lose_nothing(self, rail: RailId, outgoing: bool = False) -> int:
    before_ns = monotonic_ns()
    table, namespace, _ = self._loss(rail, outgoing)
    _run(["ip", "netns", "exec", namespace, "nft", "delete", "table", *table.split()])
    return before_ns

  def _loss(self, rail: RailId, outgoing: bool) -> tuple[str, str, str]:
    """The table of nft, its namespace, and the device whose ingress it filters."""
    layout = self._layout
    if outgoing:
      return f"netdev r2cc_{layout.port(rail)}", layout.fabric_namespace, layout.port(rail)
    return f"netdev r2cc_{rail.rail}", layout.namespace(rail.node), f"rail{rail.rail}"

  def silence_management(self, node: int, silent: bool) -> int:
    """The management network of `node` loses every packet, both ways, without an event; or no longer."""
    layout = self._layout
    return self._sockets[layout.fabric_namespace].set_port("mgmt", layout.management_port(node), member=not silent)

  def connections(self, rail: RailId) -> list[Connection]:
    """TCP connections that are open from `rail`'s address, the one that has sent the most first."""
    lines = _run(["ip", "netns", "exec", self._layout.namespace(rail.node), "ss", "-HtinO", "state", "established", "src",
                  self.rail_address(rail)]).splitlines()
    found = []
    for line in lines:
      local, peer = line.split()[2:4]
      acked = re.search(r"bytes_acked:(\d+)", line)
      found.append(Connection(int(local.rpartition(":")[2]), int(peer.rpartition(":")[2]), int(acked[1]) if acked else 0))
    return sorted(found, key=lambda connection: -connection.acked_bytes)

  def link_is_up(self, rail: RailId) -> bool:
    return self._node_socket(rail).link_is_up(f"rail{rail.rail}")

  def counters(self, node: int) -> dict[str, Counters]:
    links = json.loads(_run(["ip", "-n", self._layout.namespace(node), "-s", "-j", "link", "show"]))
    return {link["ifname"]: Counters(link["stats64"]["tx"]["bytes"], link["stats64"]["rx"]["bytes"])
            for link in links if link["ifname"].startswith("rail")}

  def _node_socket(self, rail: RailId) -> NetnsSocket:
    return self._sockets[self._layout.namespace(rail.node)]

  def _in(self, namespace: str, program: str, lines: Sequence[str]) -> None:
    if lines:
      _run([program, "-n", namespace, "-batch", "-"], "\n".join(lines))


def _run(argv: list[str], stdin: str = "", check: bool = True) -> str:
  try:
    done = subprocess.run(argv, input=stdin + "\n", capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
  except FileNotFoundError as error:
    raise LabError(f"'{argv[0]}' is not installed; install the package iproute2") from error
  except subprocess.TimeoutExpired as error:
    raise LabError(f"'{' '.join(argv)}' did not end within {_COMMAND_TIMEOUT_S} s") from error
  if check and done.returncode != 0:
    raise LabError(f"'{' '.join(argv)}' failed: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
  return done.stdout
