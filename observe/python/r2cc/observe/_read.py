"""read(): the records of a producer that runs, or that somebody holds; each step whole, each gap an item."""

import ctypes
import dataclasses
import os
import struct
import time

from . import _library

_FORMATS = {"U8": "B", "I8": "b", "BOOL": "?", "U16": "H", "I16": "h", "F16": "e", "U32": "I", "I32": "i", "F32": "f", "U64": "Q",
            "I64": "q", "F64": "d"}
# A reader that waits looks again after a part of the time that it has waited: late by 3 % at most, and cheap when a run is idle.
_PAUSE_LEAST_S, _PAUSE_MOST_S, _PAUSE_PART = 50e-6, 1e-3, 1 / 32


@dataclasses.dataclass(frozen=True)
class Gap:
  """Steps that no record has, from `first` on."""
  first: int
  dropped_device: int
  dropped_host: int
  unwanted: int
  missed: int

  @property
  def steps(self):
    return self.dropped_device + self.dropped_host + self.unwanted + self.missed

  @property
  def lost(self):
    """Those that somebody wanted."""
    return self.steps - self.unwanted


@dataclasses.dataclass(frozen=True)
class Stats:
  """Of a row: of its finite elements, and how many are not."""
  least: float
  greatest: float
  mean: float
  rms: float
  nans: int
  infinities: int


class Value:
  """A tensor of a record, in memory of its own."""

  def __init__(self, dtype, shape, data):
    self.dtype, self.shape, self.data = dtype, tuple(shape), data

  def numbers(self):
    """All of them in a row. BF16 and F8 are their bits; statistics are Stats."""
    if self.dtype == "STATS":
      return [Stats(*one) for one in struct.iter_unpack("<4f2I", self.data)]
    if self.dtype == "BF16":
      return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in memoryview(self.data).cast("H")]
    return list(memoryview(self.data).cast(_FORMATS.get(self.dtype, "B")))

  def tolist(self):
    numbers = self.numbers()
    if not self.shape:
      return numbers[0]
    for size in reversed(self.shape[1:]):
      numbers = [numbers[i:i + size] for i in range(0, len(numbers), size)] if size else []
    return numbers

  def numpy(self):
    """Needs NumPy; BF16 as uint16."""
    import numpy  # pylint: disable=import-outside-toplevel
    if self.dtype == "STATS":
      return numpy.frombuffer(self.data, [(field.name, "<u4" if field.type == "int" else "<f4") for field in dataclasses.fields(Stats)])
    return numpy.frombuffer(self.data, "<" + {"BF16": "H"}.get(self.dtype, _FORMATS.get(self.dtype, "B"))).reshape(self.shape)

  def row(self, index):
    """The bytes of one row, as a Value."""
    count = len(self.data) // self.shape[0]
    return Value(self.dtype, self.shape[1:], self.data[index * count:(index + 1) * count])

  def __eq__(self, other):
    return isinstance(other, Value) and (self.dtype, self.shape, self.data) == (other.dtype, other.shape, other.data)

  def __repr__(self):
    return f"Value({self.dtype}, {list(self.shape)})"


@dataclasses.dataclass
class Step:
  """One step, whole. step["model.layers.3"], step.tags["request"]."""
  number: int
  sequence: int
  rank: int
  rows: int
  groups: int
  time_ns: int
  taps: dict
  tags: dict

  def __getitem__(self, name):
    if name not in self.taps:
      raise KeyError(f"{name}: step {self.number} has {', '.join(self.taps)}")
    return self.taps[name]


class _Items:
  """Steps and gaps, one after the other."""

  def steps(self):
    return (item for item in self if isinstance(item, Step))

  def sequence(self, name, request, tag="request", position="position"):
    """One request's rows of a tap by their position, and a mask: True where a row is missing. Without a tag `position` in the order of
    steps."""
    rows, next_position = {}, 0
    for step in self.steps():
      if name not in step.taps:
        continue
      positions = step.tags[position].numbers() if position in step.tags else None
      for index, its in enumerate(step.tags[tag].numbers()[:step.rows]):
        if its != request:
          continue
        rows[positions[index] if positions else next_position] = step.taps[name].row(index)
        next_position += 1
    end = max(rows, default=-1) + 1
    return [rows.get(at) for at in range(end)], [at not in rows for at in range(end)]


class Live(_Items):
  """Of shared memory. Ends when the producer has, or after `timeout_s` without anything."""

  def __init__(self, run, rank, register, follow, timeout_s):
    fits = [one for one in _library.find(run) if rank is None or one.rank == rank]
    if len({one.rank for one in fits}) > 1:
      raise _library.Error(f"run {run} has ranks {', '.join(str(one.rank) for one in fits)}: say which")
    # If several producers had one name, the one that goes on.
    fits.sort(key=lambda one: (one.life == 0 and one.alive, one.id))
    self._handle, self._follow, self._timeout_s = ctypes.c_void_p(), follow, timeout_s
    self._pid = os.getpid()
    _library.call("reader_open", run.encode(), fits[-1].id if fits else 0, ctypes.byref(self._handle))
    self.run, self._register, self.ended = run, register, False
    if register:
      _library.call("reader_register", self._handle)

  def __iter__(self):
    record, waited_since = _library.Record(), None
    while self._handle:
      try:
        _library.call("next", self._handle, ctypes.byref(record))
      except _library.Error as error:
        if error.code != _library.BROKEN:
          raise
        self.close()
        raise
      gap = record.gap
      if gap.steps:
        yield Gap(record.step - gap.steps, gap.dropped_device, gap.dropped_host, gap.unwanted, gap.missed)
      if record.found == _library.RECORD:
        waited_since = None
        step = self._step(record)
        yield step if step is not None else Gap(record.step, 0, 0, 0, 1)
      elif record.found == _library.END or not self._follow:
        self.ended = record.found == _library.END
        return
      else:
        now = time.monotonic()
        waited_since = waited_since or now
        waited_s = now - waited_since
        if self._timeout_s is not None and waited_s >= self._timeout_s:
          return
        time.sleep(min(max(_PAUSE_PART * waited_s, _PAUSE_LEAST_S), _PAUSE_MOST_S))

  def _step(self, record):
    """A copy; None if the reader was cut off meanwhile, so that it may be wrong."""
    result = Step(record.step, record.sequence, record.rank, record.rows, record.groups, record.time_ns, {}, {})
    view = _library.View()
    for is_tag, count, into in ((1, record.tags, result.tags), (0, record.taps, result.taps)):
      for index in range(count):
        _library.call("record_tap", self._handle, is_tag, index, ctypes.byref(view))
        if view.data is not None:
          into[view.name.decode("ascii")] = Value(_library.DTYPES[view.dtype], view.shape[:view.dimensions],
                                                  ctypes.string_at(view.data, view.data_bytes))
    try:
      _library.call("release_record", self._handle)
    except _library.Error as error:
      if error.code != _library.CUT_OFF:
        raise
      if self._register:
        _library.call("reader_register", self._handle)
      return None
    return result

  def counts(self):
    """Of what was read so far; equal to the producer's by cause, once all was."""
    run = _library.Run()
    _library.call("reader_counts", self._handle, ctypes.byref(run))
    return run.counts.as_dict()

  def close(self):
    handle, self._handle = self._handle, None
    if handle and self._pid == os.getpid():
      _library.call("reader_close", handle)

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self.close()

  def __del__(self):
    if getattr(self, "_handle", None):
      self.close()


def read(source, *, rank=None, register=True, follow=True, timeout_s=None):
  """The steps and gaps of a run by its name, or of a folder of files.

  register: the producer keeps what this has not read, until it stalls; without, it may be overtaken. follow: wait for what comes.
  """
  if os.path.isdir(source):
    from . import _files  # pylint: disable=import-outside-toplevel
    return _files.Files(source, rank)
  return Live(str(source), rank, register, follow, timeout_s)
