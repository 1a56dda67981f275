"""Points: places in a model, by globs over its modules' names, and what is kept of them."""

import dataclasses
import fnmatch
import itertools
import re

from . import _library


@dataclasses.dataclass(frozen=True)
class Pattern:
  """GLOB[:in|:out][[INDEX]][:stats|:hash], for instance model.layers.*, lm_head:stats, layers.3.attn:out[1]:hash."""
  text: str
  glob: str
  side: str
  index: int
  op: int

  def matches(self, name):
    """Stars stay within a part of the name; {a,b} is either."""
    parts = name.split(".")
    return name != "" and any(len(parts) == len(glob) and all(map(fnmatch.fnmatchcase, parts, glob))
               for glob in (one.split(".") for one in _alternatives(self.glob)))

  def tap_name(self, name):
    return name + self.text[len(self.glob):]


def parse(text):
  found = re.fullmatch(r"([^:\[\]]+)(?::(in|out))?(?:\[(\d{1,3})\])?(?::(copy|stats|hash))?", text)
  if found is None:
    raise _library.Error(f"point {text!r}: GLOB[:in|:out][[INDEX]][:stats|:hash]")
  return Pattern(text, found[1], found[2] or "out", int(found[3] or 0), _library.OPERATORS.index(found[4] or "copy"))


def _alternatives(glob):
  parts = re.split(r"\{([^{}]*)\}", glob)
  return ["".join(one) for one in itertools.product(*(part.split(",") if i % 2 else [part] for i, part in enumerate(parts)))]


def pick(value, index):
  """The tensor at `index` of what a module takes or gives: a tensor, a tuple, a dictionary or an object with fields of tensors."""
  if isinstance(value, dict):
    value = tuple(value.values())
  if isinstance(value, (tuple, list)):
    return value[index] if index < len(value) else None
  return value if index == 0 else None
