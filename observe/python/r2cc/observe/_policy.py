"""Budgets and schedule of a producer."""

import dataclasses

from . import _library


@dataclasses.dataclass(frozen=True)
class Policy:
  """Budgets and schedule. `full`: "drop", or "block:MILLISECONDS"."""
  host_mib: float = 512
  device_mib: float = 64  # of a GPU
  held_mib: float = 64  # of tensors on a GPU that a step keeps to its end; those beyond it are copied at their points
  every: int = 1
  prefill: bool = True
  decode: bool = True
  full: str = "drop"
  reader_timeout_ms: int = 5000
  segment_mib: float = 64
  segment_s: float = 10

  def block_ns(self):
    if self.full == "drop":
      return 0
    kind, _, bound = self.full.partition(":")
    if kind != "block" or not bound.isdigit():
      raise _library.Error(f"full={self.full!r}: drop or block:MILLISECONDS; a wait without a bound does not exist")
    return int(bound) * 1_000_000
