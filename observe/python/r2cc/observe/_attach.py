"""attach(): hooks that hand tensors of a model to a producer, step by step. Nothing here changes what the model computes: what goes wrong
is one warning, and the step is counted as one that did not end."""

import ctypes
import dataclasses
import os
import sys
import threading
import warnings

from . import _compiled
from . import _library
from . import _points
from . import _policy
from . import _read
from . import _tensor

_active = []  # Taps that are attached: for point()


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


def point(name, value):
  """Names any tensor in a model's own code, and gives it back."""
  for taps in _active:
    taps._named(name, value)  # pylint: disable=protected-access
  return value


def attach(model, points, *, run, device=None, tags=None, rows=None, files=None, callback=None, policy=_policy.Policy(), rank=0):
  """Taps `points` of `model` until the result is closed, best by `with`. See docs/operate/observe.md.

  device: "host" or "cuda:N", where the tensors are (default: where the model's first parameter is, else "host").
  tags: name -> tensor, list of numbers, or a function that gives one. rows: (indices, count): the rows of each tap's first dimension that
  are kept, as indices (None: the first ones) and their count, each of them a value or a function. Both are read when a step begins.
  """
  return Taps(model, points, run=run, device=device, tags=tags, rows=rows, files=files, callback=callback, policy=policy, rank=rank)


class Taps:
  """What attach() gives: switches, counts, the end."""

  def __init__(self, model, points, *, run, device, tags, rows, files, callback, policy, rank):
    self._handle, self._removable, self._pid = None, [], os.getpid()
    self._patterns = [_points.parse(text) for text in points]
    if not 1 <= len(self._patterns) <= 64 or len(set(points)) != len(points):
      raise _library.Error("1 to 64 points, each of them once")
    self._tags, self._rows, self._groups = dict(tags or {}), rows, (1 << len(self._patterns)) - 1
    device = str(device if device is not None else _device_of(model))
    self._gpu = _tensor.gpu_of(device)
    self._held_bytes = policy.held_mib * (1 << 20)
    self.phase = "decode"  # of the next step: "prefill" or "decode"
    # tap -> "late" or "inline", as the steps that were checked found; "inline: held_mib" where that budget was used up
    self.self_check = {}
    self._layouts, self._first_hits, self._by_tags, self._points_of_name = {}, {}, {}, {}
    self._depth, self._steps, self._never, self._warned, self._error = 0, 0, set(range(len(self._patterns))), set(), None
    self._thread = None
    self._clear()
    self._tracing = _compiled.tracing()
    self._collector = None
    options = _library.Options(run=run.encode(), device=device.encode(), rank=rank, host_bytes=int(policy.host_mib * (1 << 20)),
                               every=policy.every, phases=policy.decode * 1 + policy.prefill * 2, block_ns=policy.block_ns(),
                               reader_timeout_ns=policy.reader_timeout_ms * 1_000_000, device_bytes=int(policy.device_mib * (1 << 20)))
    if policy.every < 1 or not (policy.decode or policy.prefill):
      raise _library.Error("no step would ever be wanted")
    handle = ctypes.c_void_p()
    _library.call("open", ctypes.byref(options), ctypes.byref(handle))
    self._handle = handle
    try:
      if self._tracing is not _compiled._never:  # pylint: disable=protected-access
        self._collector = _compiled.Collector(self, device, self._tags, rows)
        self._points_of_name = self._collector.named
      if files is not None:
        _library.call("files", handle, os.fsencode(files), int(policy.segment_mib * (1 << 20)), int(policy.segment_s * 1e9))
      self._hook(model)
      if callback is not None:
        self._call_back(run, rank, callback)
    except BaseException:
      self.close()
      raise
    _active.append(self)

  # Hooks.

  def _hook(self, model):
    keep, tracing, collector = self._removable.append, self._tracing, self._collector

    # Dynamo traces these: what is above and below the branch alone is in a compiled model.
    def before(module, args):  # pylint: disable=unused-argument
      if tracing():
        collector.begin()
      else:
        self._safely(self._begin)

    def after(module, args, output):  # pylint: disable=unused-argument
      if tracing():
        collector.end()
      else:
        self._safely(self._end)

    keep(model.register_forward_pre_hook(before))
    for name, module in model.named_modules():
      for group, pattern in enumerate(self._patterns):
        if pattern.matches(name):
          hook = self._hook_of(pattern.tap_name(name), group, pattern.index)
          if pattern.side == "in":
            keep(module.register_forward_pre_hook(hook))
          else:
            keep(module.register_forward_hook(hook))
    keep(model.register_forward_hook(after))

  def _hook_of(self, tap, group, index):
    tracing, collector = self._tracing, self._collector

    def hook(module, *tensors):  # what it takes; or what it takes and what it gives
      if tracing():
        collector.hit(tap, group, index, tensors[-1])
      else:
        self._safely(self._hit, tap, group, tensors[-1])
    return hook

  def _safely(self, call, *arguments):
    if self._handle is None or os.getpid() != self._pid:
      return
    try:
      call(*arguments)
    except Exception as error:  # pylint: disable=broad-except
      self._broken = True
      self._say(str(error))

  def _say(self, line):
    self._error = self._error or line
    if line not in self._warned and len(self._warned) < 16:
      self._warned.add(line)
      warnings.warn("r2cc.observe: " + line, RuntimeWarning, stacklevel=2)

  def _clear(self):
    self._fired, self._seen = [], {}
    self._in_step, self._broken, self._begun, self._taken, self._expected = False, False, False, False, None
    self._kept_rows, self._kept_tags = None, []

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
    # On a GPU tags and rows are copied by a kernel: now, or they may be those of the next step. So the record must have begun.
    expected = self._by_tags.get(self._tags_signature()) if self._is_early() else None
    if expected is not None:
      self._expected = expected
      self._begin_record(expected)

  def _is_early(self):
    """Whether the record has something that is copied when the step begins."""
    rows_are_on_gpu = self._kept_rows is not None and any(isinstance(part, _tensor.Described) for part in self._kept_rows)
    return self._gpu is not None and (bool(self._kept_tags) or rows_are_on_gpu)

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
      self._say("never fired by the end of the first step: " + ", ".join(self._patterns[group].text for group in sorted(self._never)))
      self._never.clear()
    if self._broken or not self._fired:
      self._abandon()
      return
    layout, is_early = self._layouts.get(self._signature()), self._is_early()
    is_new = layout is None
    if is_new:
      layout = self._check()
    self._by_tags[self._tags_signature()] = layout
    # What had to be copied at its point, or when the step began, was copied for this layout or not at all: a new one is known by now.
    must_be_known = self._begun or layout.inline or is_early
    if must_be_known and (is_new or layout is not self._expected or (is_early and not self._begun)):
      self._begin_record(layout)
      self._abandon()
      return
    self._finish(layout)

  def _finish(self, layout):
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
    layout = _Layout(identity.value, {fired.name: index for index, fired in enumerate(self._fired)},
                     {fired.name: self._shape_of(fired) for fired in self._fired}, frozenset(inline))
    self._layouts[self._signature()] = layout
    self._first_hits[self._shape_of(self._fired[0])] = layout
    return layout

  # For the caller.

  def _call_back(self, run, rank, callback):
    def body():
      for item in reader:
        callback(item)
    reader = _read.read(run, rank=rank)
    self._thread = threading.Thread(target=body, name="r2cc-taps-callback", daemon=True)
    self._thread.start()

  def enable(self, *points):
    """The groups of these points, or of all; in force within two steps."""
    self._switch(points, True)

  def disable(self, *points):
    self._switch(points, False)

  def _switch(self, points, on):
    texts = [pattern.text for pattern in self._patterns]
    for text in points or texts:
      if text not in texts:
        raise _library.Error(f"{text} is not among the points that were attached: " + ", ".join(texts))
      bit = 1 << texts.index(text)
      self._groups = self._groups | bit if on else self._groups & ~bit
    _library.call("set", self._handle, self._groups)

  def counters(self):
    """Steps by what became of them."""
    counts = _library.Counts()
    _library.call("counters", self._handle, ctypes.byref(counts))
    return counts.as_dict()

  @property
  def error(self):
    """The first thing that went wrong; None."""
    return self._error

  def flush(self, timeout_s=60):
    """All until now is in files, if there are any."""
    _library.call("flush", self._handle, int(timeout_s * 1e9))

  def close(self):
    """The hooks go; the model goes on without. Readers may read what is in the ring until they let go of it."""
    if self in _active:
      _active.remove(self)
    for hook in self._removable:
      hook.remove()
    self._removable.clear()
    handle, self._handle = self._handle, None
    if handle is None or os.getpid() != self._pid:
      return
    _library.call("close", handle)
    if self._thread is not None and self._thread is not threading.current_thread():
      self._thread.join(timeout=60)

  def __enter__(self):
    return self

  def __exit__(self, kind, error, trace):
    self.close()
    if kind is None and self._error is not None:
      raise _library.Error(self._error)


def _device_of(model):
  """Of the model's first parameter."""
  parameters = getattr(model, "parameters", None)
  first = next(iter(parameters()), None) if callable(parameters) else None
  device = getattr(first, "device", "host")
  return device if _tensor.gpu_of(device) is not None else "host"


def _struct_of(name, op, group, tensor, rows):
  shape = tensor.shape[1:] if rows else tensor.shape
  return _library.Tap(name=name.encode("ascii", "replace"), shape=(ctypes.c_uint64 * len(shape))(*shape), dimensions=len(shape), op=op,
                      dtype=tensor.code, group=group, rows=rows)
