"""Tensor taps: what happens inside a model, whole or absent, never wrong. docs/operate/observe.md."""

from ._attach import Taps, attach, point
from ._files import verify
from ._library import Error
from ._plan import Plan, Planned, plan
from ._policy import Policy
from ._read import Gap, Stats, Step, Value, read

__all__ = ["Error", "Gap", "Plan", "Planned", "Policy", "Stats", "Step", "Taps", "Value", "attach", "plan", "point", "read", "verify"]
