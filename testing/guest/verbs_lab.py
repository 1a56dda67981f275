"""Offers the rails of an emulated guest as a lab: two nodes in one kernel, one soft-RoCE device behind each rail. Runs in the guest, as
root.

rails.sh has made them, with the wiring "bridge": n0 is its node a, n1 its node b.
"""

import pathlib
import subprocess
from types import TracebackType
from typing import Callable, Sequence

from testing.lab.lab import Counters, LabError, RailId
from testing.lab.loopback import free_port
from testing.lab.netns_socket import NetnsSocket

_INTERFACES = pathlib.Path("/sys/class/net")
# Both nodes are in one kernel: in addition to their rails they share its loopback interface.
_MEETING_PLACE = "127.0.0.1"
_COMMAND_TIMEOUT_S = 60


def interface(rail: RailId) -> str:
  return f"v{rail.rail}{'ab'[rail.node]}"


def port(rail: RailId) -> str:
  """The other end of the cable, in the rail's bridge."""
  return f"p{rail.rail}{'ab'[rail.node]}"


def bridge(rail: RailId) -> str:
  return f"bridge{rail.rail}"


def peer(rail: RailId) -> RailId:
  return RailId(1 - rail.node, rail.rail)


def address(rail: RailId) -> str:
  return f"10.0.{rail.rail}.{rail.node + 1}"


def neighbour_commands(rails: int, hardware_address: Callable[[RailId], str]) -> list[str]:
  """For `ip -batch`. If its cable is pulled, a packet of soft-RoCE would wait three seconds in the kernel for its neighbour's address, and
  its queue pair could not be destroyed before. A NIC knows the address, and has no such queue."""
  ends = [RailId(node, rail) for rail in range(rails) for node in (0, 1)]
  return [f"neigh replace {address(peer(end))} lladdr {hardware_address(peer(end))} dev {interface(end)} nud permanent" for end in ends]


class VerbsLab:
  """A context manager. Its faults end with the guest."""

  mode = "verbs"
  nodes = 2
  rate_gbps: float | None = None

  def __init__(self, rails: int):
    self.rails = rails
    self._links = NetnsSocket(None)

  def __enter__(self) -> "VerbsLab":
    commands = neighbour_commands(self.rails, lambda rail: _read(rail, "address"))
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S,
                          check=False)
    if done.returncode != 0:
      raise LabError(f"the guest's neighbours cannot be set: {' '.join(done.stderr.split())}")
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    self._links.close()

  def management_address(self, node: int) -> str:
    del node
    return _MEETING_PLACE

  def management_interface(self, node: int) -> str:
    del node
    return _MEETING_PLACE

  def rail_address(self, rail: RailId) -> str:
    return address(rail)

  def rails_variable(self, node: int) -> str:
    return ",".join(interface(RailId(node, rail)) for rail in range(self.rails))

  def command(self, node: int, argv: Sequence[str]) -> list[str]:
    del node
    return list(argv)

  def free_port(self, node: int) -> int:
    return free_port(self.management_address(node))

  def cut(self, rail: RailId) -> int:
    """Pulls the cable at this end: its port has an event, the other end silence."""
    return self._links.set_link(port(rail), up=False)

  def heal(self, rail: RailId) -> int:
    return self._links.set_link(port(rail), up=True)

  def blackhole(self, rail: RailId) -> int:
    """Takes the cable's far end out of its bridge: silence in both directions, and no event anywhere."""
    return self._links.set_port(bridge(rail), port(rail), member=False)

  def unblackhole(self, rail: RailId) -> int:
    return self._links.set_port(bridge(rail), port(rail), member=True)

  def counters(self, node: int) -> dict[str, Counters]:
    """The interface counts soft-RoCE's packets, because they pass through it."""
    ends = {f"rail{rail}": RailId(node, rail) for rail in range(self.rails)}
    return {name: Counters(*(int(_read(end, f"statistics/{way}_bytes")) for way in ("tx", "rx"))) for name, end in ends.items()}


def _read(rail: RailId, file: str) -> str:
  try:
    return (_INTERFACES / interface(rail) / file).read_text(encoding="ascii").strip()
  except OSError as error:
    raise LabError(f"{rail}: {interface(rail)}: {error.strerror}") from error
