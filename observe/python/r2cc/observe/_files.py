"""Folders of segments and manifests: reading and verifying. All of it may come from somebody else: sizes, names and offsets are checked."""

import json
import os
import struct

from . import _library
from . import _read

_LINE_BYTES_MAX = 16 << 20
_HEAD_BYTES_MAX = 256 << 20
_HEADER = struct.Struct("<IBBHQQQQQIIHHI")  # of a record; observe/record/record.h
_MAGIC = 0x52543252


class Manifest:
  """What is whole in a folder, by one producer."""

  def __init__(self, path):
    self.path, self.folder = path, os.path.dirname(path)
    self.lines = []
    with open(path, "rb") as file:
      for number, line in enumerate(iter(lambda: file.readline(_LINE_BYTES_MAX), b""), 1):
        if not line.endswith(b"\n"):
          break  # the writer was killed, or goes on
        try:
          value = json.loads(line)
        except ValueError:
          value = None
        if not isinstance(value, dict):
          raise _library.Error(f"{path}:{number}: no line of a manifest")
        self.lines.append(value)
    first = self.lines[0] if self.lines else {}
    if first.get("r2cc_taps") != 1 or not isinstance(first.get("run"), str) or not isinstance(first.get("rank"), int):
      raise _library.Error(f"{path}: not a manifest of tensor taps, version 1")
    self.run, self.rank = first["run"], first["rank"]

  def segments(self):
    """(file, line) of each; Error for a name that leads elsewhere."""
    for line in self.lines[1:]:
      if "segment" not in line:
        continue
      name = line["segment"]
      if not isinstance(name, str) or os.path.basename(name) != name or not name.endswith(".safetensors"):
        raise _library.Error(f"{self.path}: {name!r} is no segment of this folder")
      yield os.path.join(self.folder, name), line

  def end(self):
    """The last counts; None: the producer did not close."""
    ends = [line for line in self.lines[1:] if "end" in line]
    return ends[-1] if ends else None


def manifests(folder, rank=None):
  """Those of a folder."""
  names = sorted(name for name in os.listdir(folder) if name.endswith(".manifest"))
  found = [Manifest(os.path.join(folder, name)) for name in names]
  found = [one for one in found if rank is None or one.rank == rank]
  if not found:
    raise _library.Error(f"{folder}: no manifest" + ("" if rank is None else f" of rank {rank}"))
  return found


def _tensors(path):
  """name -> (dtype, shape, bytes) of a safetensors file."""
  with open(path, "rb") as file:
    size = os.fstat(file.fileno()).st_size
    raw = file.read(8)
    length = struct.unpack("<Q", raw)[0] if len(raw) == 8 else size
    if length > min(size - 8, _HEAD_BYTES_MAX):
      raise _library.Error(f"{path}: no file of safetensors: its head would have {length} bytes")
    try:
      head = json.loads(file.read(length))
      del head["__metadata__"]
    except (ValueError, KeyError, TypeError):
      raise _library.Error(f"{path}: no file of safetensors: its head is no JSON of ours") from None
    data = file.read()
  result = {}
  for name, entry in head.items():
    try:
      dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
      count = _library.DTYPE_BYTES[_library.DTYPES.index(dtype)]
      for of in shape:
        count *= of
      sound = 0 <= begin <= end <= len(data) and end - begin == count and all(isinstance(of, int) and of >= 0 for of in shape)
    except (KeyError, TypeError, ValueError):
      sound = False
    if not sound:
      raise _library.Error(f"{path}: what it says of {name!r} makes no sense")
    result[name] = (dtype, tuple(shape), data[begin:end])
  return result


def steps_of(path, rank):
  """The steps of one segment, with their count of steps that were not wanted."""
  steps = {}
  for name, (dtype, shape, data) in _tensors(path).items():
    number, _, tap = name.partition("/")
    if not number.isdigit() or not tap:
      raise _library.Error(f"{path}: {name!r} is no tensor of a step")
    steps.setdefault(int(number), {})[tap] = (dtype, shape, data)
  for number, taps in steps.items():
    dtype, shape, raw = taps.pop("@", (None, None, b""))
    if len(raw) != _HEADER.size:
      raise _library.Error(f"{path}: step {number} has no header")
    magic, version, _, _, step, sequence, _, groups, time_ns, _, rows, _, _, unwanted = _HEADER.unpack(raw)
    if magic != _MAGIC or version != 1 or step != number:
      raise _library.Error(f"{path}: the header of step {number} is not its own")
    values = {}
    for name, (dtype, shape, data) in taps.items():
      if name.rpartition(":")[2] == "stats" and dtype == "U8" and shape[-1:] == (24,):
        dtype, shape = "STATS", shape[:-1]
      values[name] = _read.Value(dtype, shape, data)
    yield _read.Step(number, sequence, rank, rows, groups, time_ns, {name: value for name, value in values.items() if name[0] != "#"},
                     {name[1:]: value for name, value in values.items() if name[0] == "#"}), unwanted


def _gaps(line):
  for gap in line.get("gaps", []):
    if not isinstance(gap, list) or len(gap) != 5 or not all(isinstance(of, int) and of >= 0 for of in gap):
      raise _library.Error(f"{gap!r} is no gap")
    yield _read.Gap(*gap)


def _lost(line):
  """The gap of records that the disk refused."""
  try:
    first, end = line["first_step"], line["last_step"] + 1
    return _read.Gap(first, 0, 0, 0, end - first - sum(gap.steps for gap in _gaps(line) if gap.first >= first))
  except (KeyError, TypeError):
    raise _library.Error(f"{line!r} does not say what is lost") from None


class Files(_read._Items):  # pylint: disable=protected-access
  """Steps and gaps of a folder."""

  def __init__(self, folder, rank):
    found = manifests(folder, rank)
    if len(found) > 1:
      raise _library.Error(f"{folder}: ranks {', '.join(str(one.rank) for one in found)}: say which")
    self._manifest = found[0]

  def __iter__(self):
    for line in self._manifest.lines[1:]:
      gaps = list(_gaps(line))
      if "segment" in line:
        path = next(path for path, its in self._manifest.segments() if its is line)
        for step, _ in steps_of(path, self._manifest.rank):
          while gaps and gaps[0].first < step.number:
            yield gaps.pop(0)
          yield step
      elif "lost" in line:
        gaps.append(_lost(line))
      yield from gaps


def verify(folder, rank=None):
  """Lines that say what is there; Error for what is not as it was written. Every gap is derived anew."""
  for manifest in manifests(folder, rank):
    steps = records = 0
    last_unwanted, by_first = 0, {}
    for line in manifest.lines[1:]:
      for gap in _gaps(line):
        by_first[gap.first] = gap
      if "lost" in line:
        gap = _lost(line)
        by_first[gap.first] = gap
    found = {}
    for path, line in manifest.segments():
      if not os.path.exists(path):
        raise _library.Error(f"{path}: is in the manifest and not here")
      with open(path, "rb") as file:
        data = file.read()
      if len(data) != line.get("bytes"):
        raise _library.Error(f"{path}: {len(data)} bytes instead of {line.get('bytes')}")
      if f"{_library.crc32c(data):08x}" != line.get("crc32c"):
        raise _library.Error(f"{path}: its bytes are not those that were written (CRC-32C)")
      before = records
      for step, unwanted in steps_of(path, manifest.rank):
        if step.number < steps:
          raise _library.Error(f"{path}: step {step.number} comes after step {steps - 1}")
        if step.number > steps:
          found[steps] = (step.number - steps, (unwanted - last_unwanted) % (1 << 32))
        steps, last_unwanted, records = step.number + 1, unwanted, records + 1
      if records - before != line.get("records"):
        raise _library.Error(f"{path}: {records - before} records instead of {line.get('records')}")
    end = manifest.end()
    if end is not None and end["steps"] > steps:
      found[steps] = (end["steps"] - steps, None)
    for first, (count, unwanted) in found.items():
      inside = [gap for gap in by_first.values() if first <= gap.first < first + count]
      if sum(gap.steps for gap in inside) != count or (unwanted is not None and sum(gap.unwanted for gap in inside) > unwanted):
        raise _library.Error(f"{manifest.path}: steps {first} to {first + count - 1} are missing, and it does not say why")
    if sum(gap.steps for gap in by_first.values()) != sum(count for count, _ in found.values()):
      raise _library.Error(f"{manifest.path}: it names gaps that are none")
    lost = sum(gap.lost for gap in by_first.values())
    total = end["steps"] if end is not None else steps
    yield (f"{manifest.run} rank {manifest.rank}: {total} steps, {records} records whole, {lost} lost and counted, "
           f"{total - records - lost} not wanted" + ("" if end is not None else "; the producer did not close"))
