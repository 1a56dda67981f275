"""Defines the interface of an emulated cluster for drills and tests, whichever way it is made (namespaces.py, loopback.py)."""

import dataclasses
import time
from typing import Protocol, Sequence


@dataclasses.dataclass(frozen=True, order=True)
class RailId:
  """One NIC of the cluster; its text is r2ccctl's name for it."""
  node: int
  rail: int

  def __str__(self) -> str:
    return f"n{self.node}/rail{self.rail}"


@dataclasses.dataclass(frozen=True)
class Counters:
  """What an interface has carried since it was made, as the kernel counts it (headers included)."""
  sent_bytes: int
  received_bytes: int


class LabError(Exception):
  """The machine cannot do what was requested; the text is one line for a person."""


def monotonic_ns() -> int:
  """The clock of every trace and event."""
  return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Lab(Protocol):
  """Nodes n0, n1, ... with rails rail0, rail1, ... that are sound until a call breaks one."""
  mode: str  # "namespaces" or "loopback"
  nodes: int
  rails: int
  rate_gbps: float | None  # of a whole node, one direction; None: not shaped

  def management_address(self, node: int) -> str:
    """The address of `node` that is not on its rails."""
    ...

  def management_interface(self, node: int) -> str: ...

  def rail_address(self, rail: RailId) -> str: ...

  def rails_variable(self, node: int) -> str:
    """The value of R2CC_RAILS on `node`."""
    ...

  def command(self, node: int, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` on `node`."""
    ...

  def free_port(self, node: int) -> int:
    """A free TCP port of `node`'s management address."""
    ...

  def cut(self, rail: RailId) -> int:
    """Breaks `rail` with the lab's own sharpest fault; CLOCK_MONOTONIC in ns just before it."""
    ...

  def heal(self, rail: RailId) -> int:
    """Undoes cut(); CLOCK_MONOTONIC in ns just before it."""
    ...

  def counters(self, node: int) -> dict[str, Counters]:
    """By rail name. Empty if the lab's rails are no interfaces."""
    ...
