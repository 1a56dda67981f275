"""taps-gather: the GPU's time for what a step's end adds, in a graph of that alone, after other data has pushed code and parameters out of
the caches, as a model's weights do."""

import statistics
import time

import torch

from r2cc import observe
from tests.observe.gpu import card
from tests.observe.gpu import others

# Name, bytes of each tap in 16-byte units, what is tapped.
SHAPES = (("33 of 8 KiB", [512] * 33, ""), ("416 of 12 KiB", [512] * 320 + [1792] * 96, ""), ("33 of 256 KiB", [16384] * 33, ""),
          ("416 of 384 KiB", [16384] * 320 + [57344] * 96, ""), ("33 of 8 KiB, statistics", [512] * 33, ":stats"),
          ("33 of 8 KiB, hash", [512] * 33, ":hash"))


class Model(torch.nn.Module):

  def __init__(self, units):
    super().__init__()
    self.tensors = [torch.randn(1, 8 * one, device=card.DEVICE).to(torch.bfloat16) for one in units]

  def forward(self):
    for i, tensor in enumerate(self.tensors):
      observe.point(f"{'t' if i else 'first'}.{i}", tensor)


def times(graph, pause_s, repeats, other):
  """us of each replay."""
  found = []
  for _ in range(repeats):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    other.zero_()
    begin.record()
    if graph is not None:
      graph.replay()
    end.record()
    torch.cuda.synchronize()
    found.append(begin.elapsed_time(end) * 1000)
    time.sleep(pause_s)  # the link is idle again
  return found


def run(results, program, quick, only=None):
  del program
  if not card.ON_GPU:
    results.add("taps-gather", "all", passed=None, not_run="needs a GPU")
    return 0
  other = torch.empty(1 << 29, dtype=torch.uint8, device=card.DEVICE)
  nothing = statistics.median(times(None, 0, 20, other))
  failed = 0
  for name, units, operator in SHAPES:
    if only and name.replace(", ", "-").replace(" ", "") not in only:
      continue
    size = 16 * sum(units)
    pause_s = size / 15e9 + .0005
    policy = observe.Policy(device_mib=max(64, 3 * size >> 20), host_mib=max(512, 3 * size >> 20), held_mib=512)
    model, row = Model(units), {}
    try:
      points = ["first.*" + operator, "t.*" + operator]
      with torch.no_grad(), observe.attach(model, points, run=f"gather-{time.monotonic_ns()}", device=card.ATTACH, policy=policy) as taps:
        graph = card.capture(model, 2)
        for kind, change in (("copied", None), ("one_group_off", lambda: taps.disable("first.*" + operator)), ("all_off", taps.disable)):
          if change is not None:
            change()
            times(graph, pause_s, 2, other)
          us = times(graph, pause_s, 20 if quick else 100, other)
          row[kind + "_us"] = round(statistics.median(us) - nothing, 1)
          row[kind + "_greatest_us"] = round(max(us) - nothing, 1)
        taps.flush(60)
        begin_s, used_s = time.monotonic(), others.copy_thread_s()
        if name == SHAPES[0][0]:
          time.sleep(2 if quick else 5)
          row["idle_percent"] = round(100 * (others.copy_thread_s() - used_s) / (time.monotonic() - begin_s), 2)
        counters = taps.counters()
      row.update(passed=counters["dropped_device"] + counters["dropped_host"] == 0, bytes=size, nothing_us=round(nothing, 1))
    except (observe.Error, RuntimeError, AssertionError, ValueError) as error:
      row.update(passed=False, error=f"{type(error).__name__}: {error}"[:1500])
    results.add("taps-gather", name, **row)
    failed += not row["passed"]
    del model
    card.forget()
  return failed
