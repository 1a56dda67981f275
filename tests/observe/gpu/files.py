"""taps-files: how quickly records come to files, next to the disk itself. It needs no GPU."""

import os
import statistics
import tempfile
import time

import torch

from r2cc import observe

STEP_BYTES, SEGMENT_BYTES = 4 << 20, 64 << 20


def taps_rate(folder, steps, number):
  """Bytes a second from the first step to the last file. The producer waits for the files, so nothing is dropped."""
  model, x = torch.nn.Sequential(torch.nn.Identity()), torch.randint(0, 255, (STEP_BYTES,), dtype=torch.uint8)
  policy = observe.Policy(host_mib=256, full="block:60000", segment_mib=SEGMENT_BYTES >> 20)
  with observe.attach(model, ["0"], run=f"files-{time.monotonic_ns()}", device="host", files=os.path.join(folder, f"taps-{number}"),
                      policy=policy) as taps:
    begin_s = time.monotonic()
    for _ in range(steps):
      model(x)
    taps.flush(120)
    took_s = time.monotonic() - begin_s
    counters = taps.counters()
  assert counters["records"] == steps and counters["lost_to_files"] == 0, counters
  return steps * STEP_BYTES / took_s


def disk_rate(folder, steps, number):
  """The same bytes by write() and fsync(), in files of the same size."""
  data, begin_s = os.urandom(STEP_BYTES), time.monotonic()
  for first in range(0, steps, SEGMENT_BYTES // STEP_BYTES):
    with open(os.path.join(folder, f"disk-{number}-{first}"), "wb", buffering=0) as file:
      for _ in range(first, min(first + SEGMENT_BYTES // STEP_BYTES, steps)):
        file.write(data)
      os.fsync(file.fileno())
  return steps * STEP_BYTES / (time.monotonic() - begin_s)


def run(results, program, quick, only=None):
  del program, only
  steps, rates = 32 if quick else 256, {"taps": [], "disk": []}
  try:
    for turn in range(1 if quick else 3):
      with tempfile.TemporaryDirectory() as folder:
        for name in ("disk", "taps") if turn % 2 == 0 else ("taps", "disk"):
          rates[name].append({"disk": disk_rate, "taps": taps_rate}[name](folder, steps, turn))
  except (observe.Error, AssertionError, OSError) as error:
    results.add("taps-files", "4 MiB a step", passed=False, error=f"{type(error).__name__}: {error}"[:1500])
    return 1
  row = {f"{name}_gb_s": round(statistics.median(its) / 1e9, 3) for name, its in rates.items()}
  results.add("taps-files", "4 MiB a step", passed=True, turns=len(rates["taps"]), bytes=steps * STEP_BYTES, **row)
  return 0
