"""The readers of cases, in processes of their own, without PyTorch."""

import ctypes
import json
import random
import time

import numpy

from r2cc import observe
from r2cc.observe import _library
from tests.observe.gpu import values

SIZE_KEY, DATA_KEY = 20_000, 20_001  # of taps-readers


def verify(plan):
  """In a process of its own: every record until the producer's end. Prints one JSON object."""
  made = [values.names(variant, values.specs(plan["seed"] + variant, plan["taps"], plan["rows"], plan["flat"])) for variant in (0, 1)]
  tables = {"F8_E4M3": values.table_of(4, 3, False), "F8_E5M2": values.table_of(5, 2, True)}
  reader = observe.read(plan["run"])
  print("ready", flush=True)
  report = {"records": 0, "tensors": 0, "bytes": 0, "gaps": 0, "left_out": 0, "off": [], "wrong": []}

  def wrong(line):
    if len(report["wrong"]) < 10:
      report["wrong"].append(line)

  for item in reader:
    if isinstance(item, observe.Gap):
      report["gaps"] += item.steps
      continue
    report["records"] += 1
    tag = item.tags["step"].tolist()
    if tag != [item.number]:
      wrong(f"step {item.number} has the tag {tag}")
      continue
    variant = 1 if any(name.partition(":")[0].endswith("v1") for name in item.taps) else 0
    chosen = values.rows_of(plan, item.number)
    if chosen is not None and item.rows != len(chosen):
      wrong(f"step {item.number} has {item.rows} rows instead of {len(chosen)}")
    missing = made[variant].keys() - set(item.taps)
    if missing:
      report["off"].append(item.number)
      if missing != {name for name, spec in made[variant].items() if spec.op != "copy"}:
        wrong(f"step {item.number} lacks {len(missing)} taps, such as {sorted(missing)[:3]}")
    for name, spec in made[variant].items():
      if name not in item.taps:
        report["left_out"] += 1
        continue
      array, value = values.array_of(spec, item.number), item.taps[name]
      if chosen is not None:
        array = array[chosen]
      label = f"step {item.number} of {plan['name']}: {name} {spec.dtype} {spec.shape} strides {spec.strides} offset {spec.offset}"
      report["tensors"] += 1
      report["bytes"] += len(value.data)
      if spec.op == "hash":
        if value.numbers()[0] != values.hash_of(array, values.DTYPES[spec.dtype][1]):
          wrong(label + ": another hash")
      elif spec.op == "stats":
        rows = value.numbers()
        if len(rows) != (1 if chosen is None else len(chosen)):
          wrong(label + f": {len(rows)} rows of statistics")
        elif rows and (line := values.wrong_stats(rows, array, spec.dtype, tables)) is not None:
          wrong(label + ": " + line)
      elif value.data != array.tobytes():
        given = numpy.frombuffer(value.data, numpy.uint8)
        wanted = numpy.frombuffer(array.tobytes(), numpy.uint8)
        places = numpy.flatnonzero(given != wanted) if len(given) == len(wanted) else []
        wrong(label + f": {len(given)} bytes of {len(wanted)}, {len(places)} of them wrong, from {places[:1]} to {places[-1:]}")
    if set(item.taps) - set(made[variant]):
      wrong(f"step {item.number} has {sorted(set(item.taps) - set(made[variant]))[:3]}")
    time.sleep(plan["reader_s"])
  report["counts"] = reader.counts()
  reader.close()
  print(json.dumps(report), flush=True)


def count_records(run):
  """In a process of its own: reads every record in place until the producer's end. Prints one JSON object."""
  reader = observe.read(run)
  record, found, records, size = _library.Record(), None, 0, 0
  print("ready", flush=True)
  began_s = None
  while found != _library.END:
    _library.call("next", reader._handle, ctypes.byref(record))  # pylint: disable=protected-access
    found = record.found
    if found == _library.RECORD:
      began_s = began_s or time.monotonic()
      records += 1
      size += record.data_bytes
      _library.call("release_record", reader._handle)  # pylint: disable=protected-access
    elif found == _library.NOTHING:
      time.sleep(0.0002)
  print(json.dumps(dict(records=records, bytes=size, counts=reader.counts())), flush=True)


def count_of(step, rows_most):
  with numpy.errstate(over="ignore"):
    bits = values.words(numpy.arange(1, dtype=numpy.int64), numpy.int64(step), SIZE_KEY)
    power = int(values.below(bits, rows_most.bit_length())[0])
    return 1 + int(values.below(bits >> 16, 1 << 16)[0]) * ((1 << power) - 1) // (1 << 16)


class Raw:
  """A reader in place, without the copies of observe.read()."""

  def __init__(self, run, register, rank=None):
    self.live = observe.read(run, register=register, rank=rank)
    self.handle = self.live._handle  # pylint: disable=protected-access
    self.record, self.view = _library.Record(), _library.View()
    self.numbers = None

  def next(self):
    _library.call("next", self.handle, ctypes.byref(self.record))
    return self.record.found

  def release(self):
    """Whether what was read in place is right."""
    try:
      _library.call("release_record", self.handle)
      return True
    except _library.Error as error:
      if error.code != _library.CUT_OFF:
        raise
      _library.call("reader_register", self.handle)
      return False

  def is_whole(self, rows_most):
    """Whether the record is that of its step, each byte."""
    if self.numbers is None:
      self.numbers = numpy.arange(2 * rows_most, dtype=numpy.int64)
    record = self.record
    _library.call("record_tap", self.handle, 0, 0, ctypes.byref(self.view))
    count = count_of(record.step, rows_most)
    if record.rows != count or self.view.data_bytes != 16 * count:
      return False
    found = numpy.frombuffer((ctypes.c_char * (16 * count)).from_address(self.view.data), numpy.int64)
    with numpy.errstate(over="ignore"):
      return numpy.array_equal(found, values.words(self.numbers[:2 * count], numpy.int64(record.step), DATA_KEY))


def read_all(plan):
  """In a process of its own, until the producer's end. Prints one JSON object."""
  chance, habit = random.Random(plan["seed"]), plan["habit"]
  raw = Raw(plan["run"], habit != "copies")
  print(json.dumps("ready"), flush=True)
  report, found = dict(records=0, bytes=0, torn=0, unsure=0), None
  while found != _library.END:
    found = raw.next()
    if found == _library.NOTHING:
      time.sleep(0.0002)
    if found != _library.RECORD:
      continue
    size = raw.record.data_bytes
    if habit == "slow" and chance.random() < .002:
      time.sleep(chance.random() * .03)
    whole = raw.is_whole(plan["rows_most"])
    if raw.release():
      report["records"] += 1
      report["bytes"] += size
      report["torn"] += not whole
    else:
      report["unsure"] += 1  # it was cut off with the record in its hands, and knows
  report["counts"] = raw.live.counts()
  print(json.dumps(report), flush=True)


def watch(plan):
  """In a process of its own: when each step was readable. Spins."""
  raw = Raw(plan["run"], True)
  print(json.dumps("ready"), flush=True)
  times, found = {}, None
  while found != _library.END:
    found = raw.next()
    if found == _library.RECORD:
      times[raw.record.step] = time.monotonic_ns()
      raw.release()
  print(json.dumps(times), flush=True)
