"""Taps of a model that torch.compile compiles: what its hooks do while Dynamo traces them, and the operator that does a step's calls.

A hook cannot call the library in a traced model. Each hook appends its tensor to a list instead, and the model's last hook hands the list
to one custom operator. The operator claims to write a tensor of its own, the anchor, so that the compiler does not drop it. The compiler
keeps what is in the list until the operator runs: when compiled code runs, and when it is captured into a CUDA graph. What Dynamo traces
here must stay as plain as it is: lists, dictionaries, texts.
"""

# The operator does what the hooks of attach() do.
# pylint: disable=protected-access

import itertools
import sys
import typing
import weakref

from . import _library
from . import _points
from . import _tensor

_numbers = itertools.count(1)
_taps_of = weakref.WeakValueDictionary()  # number -> Taps
_step = None  # the operator
_Tensor = ()  # torch.Tensor


def _never():
  return False


def tracing():
  """The function that is true while Dynamo traces. Makes the operator where PyTorch is there and has what it takes (2.4 and later)."""
  global _step, _Tensor  # pylint: disable=global-statement
  torch = sys.modules.get("torch")
  if torch is None or not hasattr(getattr(torch, "library", None), "custom_op") or not hasattr(torch.compiler, "is_compiling"):
    return _never
  if _step is None:
    def taps_step(anchor: torch.Tensor, tensors: typing.List[torch.Tensor], text: str, number: int) -> None:
      taps = _taps_of.get(number)
      if taps is not None:
        taps._safely(run, taps, tensors, text)
    _step = torch.library.custom_op("r2cc_observe::step", mutates_args=("anchor",))(taps_step)
    _step.register_fake(lambda anchor, tensors, text, number: None)
    _Tensor = torch.Tensor
  return torch.compiler.is_compiling


class Collector:
  """The tensors of a step that is traced. All its calls are made by Dynamo but the first."""

  def __init__(self, taps, device, tags, rows):
    torch = sys.modules["torch"]
    self.tensors, self.lines, self.times, self.in_step = [], [], {}, False
    self.overwritten = {}  # taps of the checked step that must be copied at their point
    self.named = {}  # of point(): name -> [(tap, group, index)]
    self.tags, self.rows, self.number = list(tags.values()), rows, next(_numbers)
    self.anchor = torch.zeros(1, dtype=torch.uint8, device="cpu" if device == "host" else device)
    # Or Inductor captures no CUDA graph: it would write to an input that moves.
    torch._dynamo.mark_static_address(self.anchor)
    _taps_of[self.number] = taps

  def begin(self):
    """Tags and rows as they are when the step begins: copies by the compiler, which later writes do not change."""
    self.clear()
    self.in_step = True
    header = str(len(self.tags))
    for tag in self.tags:
      self.keep(tag() if callable(tag) else tag)
    if self.rows is not None:
      indices, count = self.rows
      indices, count = indices() if callable(indices) else indices, count() if callable(count) else count
      if indices is not None:
        self.keep(indices)
      if isinstance(count, _Tensor):
        self.keep(count)
      header += f" {'first' if indices is None else 'indices'} {'tensor' if isinstance(count, _Tensor) else count}"
    self.lines.append(header)

  def keep(self, value):
    # A list of numbers would be that of the traced step for ever. The operator misses it.
    if isinstance(value, _Tensor):
      self.tensors.append(value.clone())

  def hit(self, tap, group, index, value):
    if not self.in_step:
      return
    value = _points.pick(value, index)
    if not isinstance(value, _Tensor):
      return
    times = self.times.get(tap, 0) + 1
    self.times[tap] = times
    name = tap if times == 1 else f"{tap}@{times}"
    self.tensors.append(value.clone() if name in self.overwritten else value)
    self.lines.append(f"{group} {name}")

  def point(self, name, value):
    if name in self.named:
      for tap, group, index in self.named[name]:
        self.hit(tap, group, index, value)

  def end(self):
    if self.in_step and self.tensors:
      _step(self.anchor, list(self.tensors), "\n".join(self.lines), self.number)
    self.clear()

  def clear(self):
    self.in_step = False
    self.tensors.clear()
    self.lines.clear()
    self.times.clear()


def run(taps, tensors, text):
  """One step, of what the collector wrote down: the operator's work."""
  header, *lines = text.split("\n")
  tag_count, *rows = header.split(" ")
  taps._clear()
  taps._in_step = True
  early = len(tensors) - len(lines)
  if early != int(tag_count) + (bool(rows) and (rows[0] == "indices") + (rows[1] == "tensor")):
    taps._abandon()
    raise _library.Error("tags and rows of a compiled model are tensors")
  given = iter(tensors)
  for name in taps._tags:
    taps._kept_tags.append((name, _tensor.describe(next(given), taps._gpu)))
  if rows:
    indices = next(given) if rows[0] == "indices" else None
    count = next(given) if rows[1] == "tensor" else None if rows[1] == "None" else int(rows[1])
    taps._keep_rows(indices, count)
  for line, tensor in zip(lines, given):
    group, _, name = line.partition(" ")
    taps._fired.append(taps._fired_of(name, int(group), _tensor.describe(tensor, taps._gpu)))
  layout = taps._layouts.get(taps._signature())
  if layout is None:
    taps._abandon()
    raise _library.Error("a compiled step was not checked: run the same step once without torch.compile first")
  for fired in taps._fired:
    if fired.name in layout.inline:
      taps._inline(layout, fired)
  taps._finish(layout)
