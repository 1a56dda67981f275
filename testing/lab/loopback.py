"""Emulates nodes without any privilege: rail K of node N is the loopback address 127.(10+K).0.(N+1), and faults are drills of r2ccd."""

import socket
from types import TracebackType
from typing import Callable, Sequence

from testing.lab.lab import Counters, LabError, RailId, monotonic_ns


def free_port(address: str) -> int:
  """A free TCP port of a local address."""
  with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
    probe.bind((address, 0))
    return int(probe.getsockname()[1])


class LoopbackLab:
  """Implements Lab without interfaces: no shaping, no counters, no link events."""

  mode = "loopback"
  rate_gbps: float | None = None

  def __init__(self, nodes: int = 4, rails: int = 4):
    self.nodes, self.rails = nodes, rails
    self._break: Callable[[RailId], None] | None = None
    self._repair: Callable[[RailId], None] | None = None

  def __enter__(self) -> "LoopbackLab":
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    pass

  def break_with(self, fail: Callable[[RailId], None], restore: Callable[[RailId], None]) -> None:
    """Sets the functions of cut() and heal(): `r2ccctl fail-nic` and `restore-nic`."""
    self._break, self._repair = fail, restore

  def management_address(self, node: int) -> str:
    del node
    return "127.0.0.1"

  def management_interface(self, node: int) -> str:
    del node
    return "lo"

  def rail_address(self, rail: RailId) -> str:
    return f"127.{10 + rail.rail}.0.{rail.node + 1}"

  def rails_variable(self, node: int) -> str:
    return ",".join(self.rail_address(RailId(node, rail)) for rail in range(self.rails))

  def command(self, node: int, argv: Sequence[str]) -> list[str]:
    del node
    return list(argv)

  def free_port(self, node: int) -> int:
    return free_port(self.management_address(node))

  def cut(self, rail: RailId) -> int:
    return self._call(self._break, rail)

  def heal(self, rail: RailId) -> int:
    return self._call(self._repair, rail)

  def counters(self, node: int) -> dict[str, Counters]:
    del node
    return {}

  def _call(self, fault: Callable[[RailId], None] | None, rail: RailId) -> int:
    if fault is None:
      raise LabError(f"{rail}: a loopback address has no link to cut; its faults need r2ccd")
    before_ns = monotonic_ns()
    fault(rail)
    return before_ns
