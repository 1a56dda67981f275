"""The readers of taps-match and taps-lean, in processes of their own, without PyTorch."""

import ctypes
import json
import time

import numpy

from r2cc import observe
from r2cc.observe import _library
from tests.observe.gpu import values


def verify(plan):
  """In a process of its own: every record until the producer's end. Prints one JSON object."""
  made = [values.names(variant, values.specs(plan["seed"] + variant, plan["taps"], plan["rows"])) for variant in (0, 1)]
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
