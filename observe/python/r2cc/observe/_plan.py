"""plan(): what may be tapped, and what it costs."""

# It looks at what attach() found in one step.
# pylint: disable=protected-access

import dataclasses
import os
import time

from . import _attach
from . import _library
from . import _policy


@dataclasses.dataclass(frozen=True)
class Planned:
  """What one tap of a plan costs."""
  name: str
  dtype: str
  shape: tuple
  bytes_a_step: int
  placement: str


class Plan(list):
  """The taps, in the order in which they fire."""
  bytes_a_step = 0
  host_mib_least = 0.0

  def __str__(self):
    width = max(len(one.name) for one in self)
    lines = [f"{one.name:<{width}}  {one.dtype:<7} {str(list(one.shape)):<20} {one.bytes_a_step:>12} B  {one.placement}" for one in self]
    return "\n".join(lines + [f"{self.bytes_a_step} bytes a step; host_mib must be at least {self.host_mib_least:.4g}"])


def plan(model, points, example, **options):
  """What may be tapped, and what it costs: runs the model once on `example`, a tuple of arguments, and writes nothing down."""
  run = f"plan-{os.getpid()}-{time.monotonic_ns()}"
  taps = _attach.attach(model, points, run=run, policy=_policy.Policy(host_mib=options.pop("host_mib", 512)), **options)
  fired = []
  keep = taps._check
  taps._check = lambda: fired.extend(taps._fired) or keep()
  with taps:
    model(*(example if isinstance(example, tuple) else (example,)))
    count = taps._kept_rows and taps._kept_rows[1]
  result = Plan()
  for one in fired:
    size = 8 if one.op == 2 else 24 if one.op == 1 else _library.DTYPE_BYTES[one.tensor.code]
    shape = () if one.op else one.tensor.shape if count is None else (count,) + one.tensor.shape[1:]
    for of in shape:
      size *= of
    result.append(Planned(one.name, one.tensor.dtype, one.tensor.shape, size, taps.self_check[one.name]))
    result.bytes_a_step += -(-size // 16) * 16
  result.host_mib_least = 2 * (result.bytes_a_step + 256) / (1 << 20)
  return result
