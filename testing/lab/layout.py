"""Plans the emulated cluster: names, addresses, and the iproute2 commands that make it. Pure: it runs nothing.

Every lab has one namespace for its fabric (bridges and the far ends of the cables) and one per node, so that the host's own interfaces,
firewall and names are never touched and removing the namespaces removes everything.
"""

import dataclasses
import re

from testing.lab.lab import LabError, RailId

NODES_MAX = 32
RAILS_MAX = 16
# A queue of 5 ms limits what a cut loses; the bucket lets a CPU that is late for a tick still reach line rate.
SHAPE_BURST_KB_MIN, SHAPE_BURST_S = 256, 0.0005
SHAPE_LATENCY = "5ms"
# Independent of the host's setting: BBR almost stops each connection for 0.2 s every 10 s to measure its delay, which would hide the cost
# of a fault, a few milliseconds. Every kernel has this one and lets a namespace choose it.
CONGESTION_CONTROL = "reno"
RAIL_MTU = 9000

_NAME = re.compile(r"^r2cc-(\d+)-(\d+)-(fabric|n\d+)$")
_RATE = re.compile(r"^(\d+(?:\.\d+)?)(k|m|g)bit$")
_RATE_UNIT_BITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def rate_bits_per_s(rate: str) -> float:
  """The rate of tc's "500mbit"."""
  match = _RATE.match(rate)
  if not match or float(match[1]) <= 0:
    raise LabError(f"rate '{rate}' is not understood; write it like 500mbit or 8gbit")
  return float(match[1]) * _RATE_UNIT_BITS[match[2]]


def owner_pid(namespace: str) -> int | None:
  """The process that made a namespace; None: it is none of ours."""
  match = _NAME.match(namespace)
  return int(match[1]) if match else None


@dataclasses.dataclass(frozen=True)
class Layout:
  """A cluster of `nodes` times `rails`; `owner` is the pid of its maker and `serial` its number there."""
  nodes: int
  rails: int
  fabric: str  # "rail": rail K reaches only rail K; "full": every rail reaches every rail
  rate: str | None
  owner: int
  serial: int

  def __post_init__(self) -> None:
    if self.fabric not in ("rail", "full"):
      raise LabError(f"fabric '{self.fabric}' is unknown; it is 'rail' or 'full'")
    if not 1 <= self.nodes <= NODES_MAX or not 1 <= self.rails <= RAILS_MAX:
      raise LabError(f"{self.nodes} nodes of {self.rails} rails: at most {NODES_MAX} and {RAILS_MAX}, and at least one of each")
    if self.rate is not None:
      rate_bits_per_s(self.rate)

  @property
  def prefix(self) -> str:
    return f"r2cc-{self.owner}-{self.serial}"

  @property
  def fabric_namespace(self) -> str:
    return f"{self.prefix}-fabric"

  def namespace(self, node: int) -> str:
    return f"{self.prefix}-n{node}"

  def namespaces(self) -> list[str]:
    return [self.fabric_namespace] + [self.namespace(node) for node in range(self.nodes)]

  def management_address(self, node: int) -> str:
    return f"10.200.0.{node + 1}"

  def rail_address(self, rail: RailId) -> str:
    return f"10.10.{rail.rail}.{rail.node + 1}"

  def port(self, rail: RailId) -> str:
    """The switch's end of a rail's cable."""
    return f"p{rail.node}_{rail.rail}"

  def management_port(self, node: int) -> str:
    return f"m{node}"

  def bridge(self, rail: int) -> str:
    return "fabric" if self.fabric == "full" else f"rail{rail}"

  def rails_of(self, node: int) -> list[RailId]:
    return [RailId(node, rail) for rail in range(self.rails)]

  def fabric_commands(self) -> list[str]:
    """For `ip -batch` in the fabric's namespace: bridges, and every cable with its far end in its node."""
    bridges = ["mgmt"] + sorted({self.bridge(rail) for rail in range(self.rails)})
    lines = []
    for bridge in bridges:
      lines.append(f"link add {bridge} mtu {RAIL_MTU} type bridge forward_delay 0 mcast_snooping 0")
      lines.append(f"link set {bridge} up")
    for node in range(self.nodes):
      lines.append(f"link add {self.management_port(node)} type veth peer name mgmt0 netns {self.namespace(node)}")
      lines.append(f"link set {self.management_port(node)} master mgmt up")
      for rail in self.rails_of(node):
        lines += self.cable_commands(rail)
    return lines

  def cable_commands(self, rail: RailId) -> list[str]:
    """For `ip -batch` in the fabric's namespace: one cable, with its far end in its node."""
    return [f"link add {self.port(rail)} mtu {RAIL_MTU} type veth peer name rail{rail.rail} mtu {RAIL_MTU} netns "
            f"{self.namespace(rail.node)}", f"link set {self.port(rail)} master {self.bridge(rail.rail)} up"]

  def node_commands(self, node: int) -> list[str]:
    """For `ip -batch` in a node's namespace: addresses and routes."""
    lines = ["link set lo up", f"addr add {self.management_address(node)}/24 dev mgmt0", "link set mgmt0 up"]
    for rail in self.rails_of(node):
      lines += self.rail_commands(rail)
    return lines

  def rail_commands(self, rail: RailId) -> list[str]:
    """For `ip -batch` in a node's namespace: one interface up, with its address and routes."""
    interface, address = f"rail{rail.rail}", self.rail_address(rail)
    if self.fabric == "rail":
      return [f"link set {interface} up", f"addr add {address}/24 dev {interface}"]
    return [f"link set {interface} up", f"addr add {address}/16 dev {interface} noprefixroute",
            f"rule add from {address} lookup {100 + rail.rail}", *self.route_commands(rail)]

  def route_commands(self, rail: RailId) -> list[str]:
    """Routes that the kernel drops with the link and does not restore."""
    if self.fabric == "rail":
      return []
    table, route = 100 + rail.rail, f"10.10.0.0/16 dev rail{rail.rail} src {self.rail_address(rail)}"
    return [f"route replace {route} table {table}", f"route replace {route} metric {table}"]

  def sysctls(self) -> dict[str, str]:
    """For every namespace, before it has an interface."""
    settings = {"net/ipv6/conf/all/disable_ipv6": "1", "net/ipv6/conf/default/disable_ipv6": "1",
                "net/ipv4/tcp_congestion_control": CONGESTION_CONTROL}
    if self.fabric == "full":
      settings |= {"net/ipv4/conf/all/arp_ignore": "1", "net/ipv4/conf/all/arp_announce": "2",
                   "net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/default/rp_filter": "0"}
    return settings

  def steering_script(self, namespace: str, processors: int) -> str:
    """For a shell in a namespace: one processor receives the packets of each flow.

    Otherwise a packet that the shaper's timer releases overtakes one that a sender has just queued on another processor. No cable does
    that, and TCP takes it for a loss. If rates are set, all flows of an interface use the same processor, as with a NIC of one queue:
    otherwise a small message takes up to twice as long, depending on the flow's ports.
    """
    words = -(-processors // 32)

    def mask(value: int) -> str:
      return ",".join(f"{value >> 32 * word & 0xffffffff:08x}" for word in reversed(range(words)))

    if self.rate is None:
      return f'for queue in /sys/class/net/*/queues/rx-*/rps_cpus; do echo {mask((1 << processors) - 1)} > "$queue"; done'
    first = self.namespaces().index(namespace) * (self.rails + 1)
    masks = " ".join(mask(1 << (first + i) % processors) for i in range(processors))
    return f'set -- {masks}; for queue in /sys/class/net/*/queues/rx-*/rps_cpus; do echo $1 > "$queue"; set -- "$@" $1; shift; done'

  def shape_commands(self, interface: str, rate: str | None) -> list[str]:
    """For `tc -batch` in the namespace of `interface`."""
    if rate is None:
      return []
    burst_kb = max(SHAPE_BURST_KB_MIN, round(rate_bits_per_s(rate) * SHAPE_BURST_S / 8 / 1024))
    return [f"qdisc replace dev {interface} root tbf rate {rate} burst {burst_kb}kb latency {SHAPE_LATENCY}"]
