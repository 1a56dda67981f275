"""Which rails two machines have in common, from what `ip -j address show` says at either. Pure."""

import dataclasses
import ipaddress
import json

from testing.lab.lab import LabError

# For benchmarks between network devices (RFC 2544): no other network has these.
_TEMPORARY = ipaddress.ip_network("198.18.0.0/16")
_SYSCTLS = "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"


@dataclasses.dataclass(frozen=True)
class Port:
  """One port of a machine."""
  interface: str
  up: bool
  addresses: tuple[ipaddress.IPv4Interface, ...]


@dataclasses.dataclass(frozen=True)
class Rail:
  """One port at each end."""
  index: int
  here: str  # interfaces
  there: str
  here_address: str
  there_address: str
  temporary: bool  # the addresses are to be set, and taken away again

  @property
  def name(self) -> str:
    return f"rail{self.index}"

  @property
  def prefix_bits(self) -> int:
    return 24


def parse_ports(text: str, machine: str) -> dict[str, Port]:
  """By interface. `text`: of `ip -j address show`; `machine` names it in an error."""
  try:
    return {link["ifname"]: Port(link["ifname"], "UP" in link.get("flags", []), tuple(
        ipaddress.IPv4Interface(f"{one['local']}/{one['prefixlen']}") for one in link.get("addr_info", []) if one.get("family") == "inet"))
            for link in json.loads(text)}
  except (ValueError, KeyError, TypeError) as error:
    raise LabError(f"{machine}: `ip -j address show` printed {text[:80]!r}, which is not what iproute2 prints") from error


def _port(ports: dict[str, Port], interface: str, machine: str) -> Port:
  found = ports.get(interface)
  if found is None:
    raise LabError(f"{machine} has no interface {interface}; it has {' '.join(name for name in ports if name != 'lo')}")
  if not found.up:
    raise LabError(f"{interface} of {machine} is down: ip link set {interface} up")
  return found


def pair_rails(here: dict[str, Port], there: dict[str, Port], interfaces: list[tuple[str, str]], names: tuple[str, str]) -> list[Rail]:
  """The k-th interface here with the k-th there. Two that have no IPv4 address get temporary ones; others must be in one network."""
  rails = []
  for index, (one, other) in enumerate(interfaces):
    ends = _port(here, one, names[0]), _port(there, other, names[1])
    temporary = not ends[0].addresses and not ends[1].addresses
    if temporary:
      network = list(_TEMPORARY.subnets(new_prefix=24))[index]
      rails.append(Rail(index, one, other, str(network[1]), str(network[2]), True))
      continue
    common = [(a, b) for a in ends[0].addresses for b in ends[1].addresses if a.network == b.network and a.ip != b.ip]
    if not common:
      texts = [f"{port.interface} of {name} ({', '.join(map(str, port.addresses)) or 'no address'})" for port, name in zip(ends, names)]
      raise LabError(f"{texts[0]} and {texts[1]} are in no common IPv4 network: give them addresses in one, or none, for temporary ones")
    rails.append(Rail(index, one, other, str(common[0][0].ip), str(common[0][1].ip), False))
  return rails


def warnings(here: dict[str, Port], rails: list[Rail], management: tuple[str, str]) -> list[str]:
  """What will make the trial show less than it could, a line each. `management`: the addresses by which the two machines talk."""
  lines = []
  networks: dict[ipaddress.IPv4Network, list[str]] = {}
  for rail in rails:
    for address in here[rail.here].addresses:
      if str(address.ip) == rail.here_address:
        networks.setdefault(address.network, []).append(rail.here)
  for network, interfaces in networks.items():
    if len(interfaces) > 1:
      lines.append(f"{' and '.join(interfaces)} are in one network ({network}), where each answers ARP for the other: at both machines "
                   f"`{_SYSCTLS}` and a routing table for each, or the job uses one of them; `r2ccctl doctor` has the commands")
  for rail in rails:
    if management[0] == rail.here_address or management[1] == rail.there_address:
      lines.append(f"ssh goes by {rail.here}: pull another cable, or the trial itself stands still; or --peer with an address of another "
                   "network")
  return lines
