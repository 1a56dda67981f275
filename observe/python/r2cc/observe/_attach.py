"""attach(): hooks that hand tensors of a model to a producer, step by step. Nothing here changes what the model computes: what goes wrong
is one warning, and the step is counted as one that did not end."""

import collections
import ctypes
import os
import threading

from . import _compiled
from . import _library
from . import _points
from . import _policy
from . import _read
from . import _steps
from . import _tensor

_active = []  # Taps that are attached: for point()


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


class Taps(_steps.Steps):
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
    self._holding = collections.deque()  # (id, tensors): until they are copied
    self._clear()
    self._tracing = _compiled.tracing()
    self._collector = None
    options = _library.Options(run=run.encode(), device=device.encode(), rank=rank, host_bytes=int(policy.host_mib * (1 << 20)),
                               every=policy.every, phases=policy.decode * 1 + policy.prefill * 2, block_ns=policy.block_ns(),
                               reader_timeout_ns=policy.reader_timeout_ms * 1_000_000, device_bytes=int(policy.device_mib * (1 << 20)),
                               held_bytes=int(self._held_bytes))
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
    self._holding.clear()
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
