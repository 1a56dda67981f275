"""Rails that are more than one interface: a bond of two cables, or a VLAN on one. Pure."""

import dataclasses
import subprocess

from testing.lab.lab import RailId
from testing.lab.layout import RAIL_MTU, Layout

LINKS = ("veth", "bond", "vlan")
# The shortest that keeps a failover below the silence limits of the plugin.
_MIIMON_MS = 50
_VLAN = 100
_TAG_BYTES = 4
_TRIALS = {
    "bond": "ip link add trial type bond",
    "vlan": f"ip link add below type veth && ip link add link below name trial type vlan id {_VLAN}",
}


def missing_link(links: str) -> str | None:
  """Why this kernel has no such rails; None: it has."""
  if links not in _TRIALS:
    return None
  done = subprocess.run(["unshare", "--net", "sh", "-c", _TRIALS[links]], capture_output=True, text=True, check=False)
  return None if done.returncode == 0 else f"this kernel makes no {links} ({' '.join(done.stderr.split())}); --guest starts one that does"


@dataclasses.dataclass(frozen=True)
class LinkLayout(Layout):
  """`links`: what a rail is, one of LINKS."""
  links: str = "veth"

  def below(self, rail: RailId) -> list[str]:
    """The interfaces in the node that the rail's own is made of."""
    count = {"veth": 0, "bond": 2, "vlan": 1}[self.links]
    return [f"rail{rail.rail}.{part}" for part in range(count)]

  def cable_commands(self, rail: RailId) -> list[str]:
    if self.links == "veth":
      return super().cable_commands(rail)
    port, bridge, mtu = self.port(rail), self.bridge(rail.rail), RAIL_MTU + _TAG_BYTES
    cables = {f"{port}.{part}": name for part, name in enumerate(self.below(rail))}
    node = self.namespace(rail.node)
    lines = [f"link add {end} mtu {mtu} type veth peer name {name} mtu {mtu} netns {node}" for end, name in cables.items()]
    if self.links == "vlan":
      return lines + [f"link set {port}.0 up", f"link add link {port}.0 name {port} mtu {RAIL_MTU} type vlan id {_VLAN}",
                      f"link set {port} master {bridge} up"]
    # The cable that is in use has the port's own name, so that what happens to a port happens to it.
    return [line.replace(f"add {port}.0 ", f"add {port} ") for line in lines] + [
        f"link set {end} master {bridge} up" for end in (port, f"{port}.1")]

  def rail_commands(self, rail: RailId) -> list[str]:
    name, below = f"rail{rail.rail}", self.below(rail)
    lines = []
    if self.links == "bond":
      lines = [f"link add {name} type bond mode active-backup miimon {_MIIMON_MS}",
               *(f"link set {member} master {name}" for member in below), f"link set {name} mtu {RAIL_MTU}"]
    elif self.links == "vlan":
      lines = [f"link set {below[0]} up", f"link add link {below[0]} name {name} mtu {RAIL_MTU} type vlan id {_VLAN}"]
    return lines + super().rail_commands(rail)
