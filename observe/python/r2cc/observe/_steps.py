"""The steps of a model that is tapped, by what its hooks hand over: which layout each has, where its taps are copied, what is kept of it.

Nothing here changes what the model computes: what goes wrong is one warning, and the step is counted as one that did not end."""

import ctypes
import dataclasses
import os
import sys
import warnings

from . import _library
from . import _points
from . import _tensor


@dataclasses.dataclass
class _Fired:
  """A tap that fired in the step that goes on."""
  name: str
  group: int
  op: int
  tensor: _tensor.Described
  hash_at_point: int = None


@dataclasses.dataclass
class _Layout:
  id: int
  names: dict  # name -> index
  shapes: dict  # name -> as _shape_of() gives it
  inline: frozenset
  must_hold: bool  # too large for the device's ring: its steps are copied from where the tensors are


class Steps:
  """The part of Taps that its hooks call."""

  def _safely(self, call, *arguments):
    if self._handle is None or os.getpid() != self._pid:
      return
    try:
      call(*arguments)
    except Exception as error:  # pylint: disable=broad-except
      self._broken = True
      self._print(str(error))

  def _print(self, line):
    self._error = self._error or line
    if line not in self._warned and len(self._warned) < 16:
      self._warned.add(line)
      warnings.warn("r2cc.observe: " + line, RuntimeWarning, stacklevel=2)

  def _clear(self):
    self._fired, self._seen = [], {}
    self._in_step, self._broken, self._begun, self._taken, self._expected = False, False, False, False, None
    self._kept_rows, self._kept_tags, self._early_kept = None, [], False
    if self._holding:
      self._let_go()

  def _begin(self):
    if self._in_step:  # the one before raised
      self._abandon()
    self._clear()
    self._in_step = True
    for name, value in self._tags.items():
      try:
        tag = _tensor.describe(value() if callable(value) else value, self._gpu)
        self._kept_tags.append((name, tag if self._gpu is not None else tag.copied()))
      except _library.Error as error:
        raise _library.Error(f"tag {name}: {error}") from None
    if self._rows is not None:
      self._keep_rows(*(part() if callable(part) else part for part in self._rows))
    # On a GPU tags and rows are copied by a kernel: now, or they may be those of the next step. So the record must have begun, or they
    # are kept as they are now, because a prompt and a decode step may have tags of one shape.
    known = self._by_tags.get(self._tags_signature()) if self._is_early() else None
    if not known:
      return
    if len(known) == 1:
      self._expected = known[0]
    if known[-1].must_hold or (len(known) > 1 and self._can_be_kept()):
      self._keep_early()
    else:
      self._expected = known[-1]
      self._begin_record(known[-1])

  def _can_be_kept(self):
    return all(hasattr(part.owner, "contiguous") for part in self._early_parts())

  def _early_parts(self):
    rows = self._kept_rows or ()
    return [tag for _, tag in self._kept_tags] + [part for part in rows if isinstance(part, _tensor.Described)]

  def _keep_early(self):
    keep = lambda part: _cloned(part, self._gpu) if isinstance(part, _tensor.Described) else part  # noqa: E731
    self._kept_tags = [(name, keep(tag)) for name, tag in self._kept_tags]
    self._kept_rows = self._kept_rows and tuple(map(keep, self._kept_rows))
    self._early_kept = True

  def _is_early(self):
    """Whether the record has something that is copied when the step begins."""
    return self._gpu is not None and bool(self._early_parts())

  def _keep_rows(self, indices, count):
    if indices is not None:
      indices = _tensor.describe(indices, self._gpu)
      indices = indices if self._gpu is not None else indices.copied()
      if len(indices.shape) != 1 or indices.dtype not in ("I64", "I32", "U64", "U32") or not indices.is_contiguous():
        raise _library.Error("rows: indices are integers in one dimension")
    if self._gpu is not None and _tensor.is_tensor(count):
      count = _tensor.describe(count, self._gpu)
      if count.dtype not in ("I64", "I32", "U64", "U32"):
        raise _library.Error("rows: their count is an integer")
    else:
      count = int(count if count is not None else indices.shape[0])
      if count < 0 or (indices is not None and count > indices.shape[0]):
        raise _library.Error(f"rows: {count} of {0 if indices is None else indices.shape[0]} indices")
    self._kept_rows = (indices, count)

  def _named(self, name, value):
    if self._tracing():
      self._collector.point(name, value)
      return
    its = self._points_of_name.get(name)
    if its is None:
      its = self._points_of_name[name] = [(pattern.tap_name(name), group, pattern.index)
                                          for group, pattern in enumerate(self._patterns) if pattern.matches(name)]
    for tap, group, _ in its:
      self._safely(self._hit, tap, group, value)

  def _hit(self, tap, group, value):
    if not self._in_step or self._broken:
      return
    self._never.discard(group)
    pattern = self._patterns[group]
    value = _points.pick(value, pattern.index)
    if value is None:
      raise _library.Error(f"{tap}: there is no tensor of that number")
    times = self._seen[tap] = self._seen.get(tap, 0) + 1
    name = tap if times == 1 else f"{tap}@{times}"  # a module that runs several times in a step
    try:
      tensor = _tensor.describe(value, self._gpu)
      if self._kept_rows is not None and not tensor.shape:
        raise _library.Error("it has no rows to choose from")
    except _library.Error as error:
      raise _library.Error(f"{tap}: {error}") from None
    fired = self._fired_of(name, group, tensor)
    if not self._fired and self._expected is None:
      self._expected = self._first_hits.get(self._shape_of(fired))
    if self._expected is not None and self._expected.shapes.get(name) != self._shape_of(fired):
      self._expected = None  # this step goes on otherwise
    if self._expected is None:
      fired.hash_at_point = self._hash(tensor, tap)
    elif name in self._expected.inline and self._expected.must_hold:
      fired.tensor = _cloned(fired.tensor, self._gpu)
    elif name in self._expected.inline:
      self._inline(self._expected, fired)
    self._fired.append(fired)

  def _fired_of(self, name, group, tensor):
    return _Fired(name, group, self._patterns[group].op, tensor)

  def _inline(self, layout, fired):
    self._begin_record(layout)
    if self._taken:
      self._on_stream()
      _library.call("inline", self._handle, 0, layout.names[fired.name], ctypes.byref(fired.tensor.struct()))

  def _end(self):
    if not self._in_step:
      return
    if self._never:
      self._print("never fired by the end of the first step: " + ", ".join(self._patterns[group].text for group in sorted(self._never)))
      self._never.clear()
    if self._broken or not self._fired:
      self._abandon()
      return
    layout = self._layouts.get(self._signature())
    is_new = layout is None
    if is_new:
      layout = self._check()
    of_tags = self._by_tags.setdefault(self._tags_signature(), [])
    if layout not in of_tags:
      of_tags.append(layout)
    # A tensor that had to be copied at its point, or when the step began, was copied for this layout or not at all: a new
    # one is known by now.
    early_is_lost = self._is_early() and not self._begun and not self._early_kept
    must_be_known = self._begun or layout.inline or early_is_lost
    if must_be_known and (is_new or layout is not self._expected or early_is_lost):
      self._begin_record(layout)
      self._abandon()
      return
    self._finish(layout)

  def _finish(self, layout):
    if layout.must_hold and not self._begun:
      self._hold(layout)
      return
    self._begin_record(layout)
    if self._taken:
      tensors = (_library.Tensor * len(layout.names))()
      for fired in self._fired:
        if fired.name not in layout.inline:
          tensors[layout.names[fired.name]] = fired.tensor.struct()
      self._on_stream()
      _library.call("gather", self._handle, tensors, len(tensors))
    self._steps += 1
    self._clear()

  def _hold(self, layout):
    """A step whose tensors are kept until they are copied."""
    tags, taps = (_library.Tensor * len(self._kept_tags))(), (_library.Tensor * len(layout.names))()
    kept = []
    for index, (_, tag) in enumerate(self._kept_tags):
      tags[index] = tag.struct()
      kept.append(tag)
    for fired in self._fired:
      tensor = fired.tensor if fired.tensor.is_contiguous() else _cloned(fired.tensor, self._gpu)
      taps[layout.names[fired.name]] = tensor.struct()
      kept.append(tensor)
    identity = ctypes.c_uint64()
    self._on_stream()
    _library.call("hold", self._handle, layout.id, _library.PHASES[self.phase], tags, len(tags), taps, len(taps), ctypes.byref(identity))
    if identity.value:
      self._holding.append((identity.value, kept))
    self._steps += 1
    self._clear()

  def _let_go(self):
    released = ctypes.c_uint64()
    _library.call("released", self._handle, ctypes.byref(released))
    while self._holding and self._holding[0][0] <= released.value:
      self._holding.popleft()

  def _abandon(self):
    """Counts the step as one that did not end."""
    if not self._begun and self._layouts:
      self._begin_record(next(iter(self._layouts.values())), rows=False)
    if self._begun:
      self._on_stream()
      _library.call("abandon", self._handle)
      self._steps += 1
    self._clear()

  def _begin_record(self, layout, rows=True):
    if self._begun:
      return
    kept = self._kept_rows if rows else None
    struct = _library.Rows()
    if kept is not None:
      indices, count = kept
      if isinstance(count, int):
        struct.count = count
      else:
        struct.count_at, struct.count_bytes = count.address, _library.DTYPE_BYTES[count.code]
      if indices is not None:
        struct.indices, struct.index_bytes = indices.address, _library.DTYPE_BYTES[indices.code]
    taken = ctypes.c_int()
    self._on_stream()
    _library.call("begin", self._handle, layout.id, _library.PHASES[self.phase], ctypes.byref(struct), ctypes.byref(taken))
    self._begun, self._taken = True, bool(taken.value)
    if self._taken and rows:
      for index, (_, tensor) in enumerate(self._kept_tags):
        _library.call("inline", self._handle, 1, index, ctypes.byref(tensor.struct()))

  def _on_stream(self):
    """Kernels go where the model's go now."""
    torch = sys.modules.get("torch")
    if self._gpu is not None:
      _library.call("stream", self._handle, torch.cuda.current_stream(self._gpu).cuda_stream if torch is not None else 0)

  def _hash(self, tensor, tap):
    result = ctypes.c_uint64()
    self._on_stream()
    try:
      _library.call("hash", self._handle, ctypes.byref(tensor.struct()), tensor.code, ctypes.byref(result))
    except _library.Error as error:
      raise _library.Error(f"{tap}: {error}") from None
    return result.value

  # Layouts.

  def _shape_of(self, fired):
    shape = fired.tensor.shape[1:] if self._kept_rows is not None else fired.tensor.shape
    return fired.name, fired.group, fired.op, fired.tensor.dtype, shape

  def _tags_signature(self):
    return self.phase, tuple((name, tensor.dtype, tensor.shape) for name, tensor in self._kept_tags)

  def _signature(self):
    tags = self._tags_signature()[1]
    return tags, tuple(map(self._shape_of, self._fired)), self._kept_rows is not None and self._rows_most()

  def _rows_most(self):
    indices, _ = self._kept_rows
    return indices.shape[0] if indices is not None else max(fired.tensor.shape[0] for fired in self._fired)

  def _check(self):
    """A layout that is new: which taps were overwritten between their point and the step's end?"""
    inline, held_bytes = set(), 0
    for fired in self._fired:
      if fired.hash_at_point is None:
        fired.hash_at_point = self._hash(fired.tensor, fired.name)
        inline.add(fired.name)  # the step began like another one and went on otherwise: its point is past
      elif self._hash(fired.tensor, fired.name) != fired.hash_at_point:
        inline.add(fired.name)
      self.self_check[fired.name] = "inline" if fired.name in inline else "late"
      if fired.name in inline:
        if self._collector is not None:
          self._collector.overwritten[fired.name] = True
      elif self._gpu is not None:
        held_bytes += fired.tensor.bytes()
        if held_bytes > self._held_bytes:
          inline.add(fired.name)
          self.self_check[fired.name] = "inline: held_mib"
    with_rows = self._kept_rows is not None
    tags = [_struct_of(name, 0, 0, tensor, False) for name, tensor in self._kept_tags]
    taps = [_struct_of(fired.name, fired.op, fired.group, fired.tensor, with_rows) for fired in self._fired]
    identity = ctypes.c_uint32()
    _library.call("layout", self._handle, (_library.Tap * len(tags))(*tags), len(tags), (_library.Tap * len(taps))(*taps), len(taps),
                  self._rows_most() if with_rows else 0, ctypes.byref(identity))
    must_hold = ctypes.c_int()
    _library.call("must_hold", self._handle, identity.value, ctypes.byref(must_hold))
    if must_hold.value:
      inline = {name for name in inline if self.self_check[name] == "inline"}
    layout = _Layout(identity.value, {fired.name: index for index, fired in enumerate(self._fired)},
                     {fired.name: self._shape_of(fired) for fired in self._fired}, frozenset(inline), bool(must_hold.value))
    self._layouts[self._signature()] = layout
    self._first_hits[self._shape_of(self._fired[0])] = layout
    return layout


def _cloned(tensor, gpu):
  """In memory of its own, on its device, as it is now in the stream's order."""
  if not hasattr(tensor.owner, "contiguous"):
    raise _library.Error("a step that does not fit twice into the GPU's ring takes tensors of PyTorch")
  return _tensor.describe(tensor.owner.clone().contiguous(), gpu)


def _struct_of(name, op, group, tensor, rows):
  shape = tensor.shape[1:] if rows else tensor.shape
  return _library.Tap(name=name.encode("ascii", "replace"), shape=(ctypes.c_uint64 * len(shape))(*shape), dimensions=len(shape), op=op,
                      dtype=tensor.code, group=group, rows=rows)
