"""taps-match: every record of captured graphs and eager steps against the same numbers by NumPy, in another process.

Operators, dtypes, odd sizes, strides, offsets, row lists, layers that overwrite what was tapped, tags and rows that change within the step,
groups that are switched, rings that overflow, and captures of other graphs meanwhile."""

import json
import subprocess
import sys
import time

import torch

from r2cc import observe
from tests.observe.gpu import values

POINTS = ("copy.*", "stats.*:stats", "hash.*:hash")


class Model(torch.nn.Module):
  """Its step computes each tensor from the number of the step, which is on the GPU, and taps a view of it."""

  def __init__(self, plan):
    super().__init__()
    self.plan, self.variant = plan, 0
    self.specs = [values.specs(plan["seed"] + variant, plan["taps"], plan["rows"], plan["flat"]) for variant in (0, 1)]
    most = max(spec.words for made in self.specs for spec in made)
    self.numbers = torch.arange(most, dtype=torch.int64, device="cuda")
    self.ids = torch.zeros(1, dtype=torch.int64, device="cuda")
    kind = torch.int32 if plan["row_kind"] == "i32" else torch.int64
    self.indices = torch.zeros(plan["chosen"], dtype=kind, device="cuda")
    self.count = torch.zeros(1, dtype=kind, device="cuda")
    self.set_rows()

  def rows(self):
    if self.plan["row_kind"] == "none":
      return None
    return (None if self.plan["row_kind"] == "first" else self.indices, self.count)

  def set_rows(self):
    """Those of step `ids`."""
    if self.plan["row_kind"] != "none":
      self.indices.copy_(values.below(values.words(self.numbers[:len(self.indices)], self.ids, values.ROWS_KEY), self.plan["rows"]))
      self.count.copy_(values.below(values.words(self.numbers[:1], self.ids, values.COUNT_KEY), self.plan["chosen"] + 1))

  def forward(self):
    step = self.ids.clone()
    self.ids.add_(1)  # so tags and rows that are read after the step's begin are the next step's
    self.set_rows()
    late = []
    for spec in self.specs[self.variant]:
      buffer = values.words(self.numbers[:spec.words], step, spec.key)
      if spec.dtype == "BOOL":
        buffer = buffer & 0x0101010101010101
      view = buffer.view(getattr(torch, values.DTYPES[spec.dtype][0]))[spec.offset:].as_strided(spec.shape, spec.strides, spec.offset)
      observe.point(f"{spec.point}v{self.variant}", view)
      if spec.overwritten:
        late.append(buffer)
      if len(late) > 3:
        late.pop(0).bitwise_not_()
    for buffer in late:
      buffer.bitwise_not_()
    return step


def capture(model, variant):
  """Two steps without a capture: the first is checked, the second taken; then the graph."""
  model.variant = variant
  side = torch.cuda.Stream()
  side.wait_stream(torch.cuda.current_stream())
  with torch.cuda.stream(side):
    for _ in range(2):
      model()
  torch.cuda.current_stream().wait_stream(side)
  graph = torch.cuda.CUDAGraph()
  with torch.cuda.graph(graph):
    model()
  return graph


def another_capture():
  """Somebody else's, while records are copied."""
  x = torch.zeros(1000, device="cuda")
  graph = torch.cuda.CUDAGraph()
  with torch.cuda.graph(graph):
    for _ in range(50):
      x = x + 1
  graph.replay()
  return x


def wrong_switches(switches, off, steps):
  """Steps whose groups are not those of the last switch. `switches`: (the next step then, whether groups went off). That step may have the
  groups of before, the one behind it not."""
  wrong, either = [], {step for step, _ in switches}
  for step in range(4, steps):
    expected = [goes_off for at, goes_off in switches if at < step]
    if step not in either and (step in off) != (expected[-1] if expected else False):
      wrong.append(step)
  return wrong


def one(plan, program, print_line):
  """One producer's life. Gives its row of results."""
  model = Model(plan)
  policy = observe.Policy(device_mib=plan["device_mib"], host_mib=plan["host_mib"], reader_timeout_ms=120_000,
                          full=plan.get("full", "drop"))
  begin_s = time.monotonic()
  reader = None
  replays = captures = eager = 0
  switches = []
  points = POINTS[::2] if plan["flat"] else POINTS  # statistics of a row are no multiple of 16 bytes
  with torch.no_grad(), observe.attach(model, points, run=plan["run"], device="cuda", tags={"step": model.ids}, rows=model.rows(),
                                       policy=policy) as taps:
    try:
      reader = subprocess.Popen([sys.executable, program, "_verify", json.dumps(plan)], stdout=subprocess.PIPE, text=True)
      assert reader.stdout.readline().strip() == "ready"
      graphs = [capture(model, variant) for variant in (0, 1)]
      found = {name for name, placement in taps.self_check.items() if placement == "inline"}
      planned = {name for variant in (0, 1) for name, spec in values.names(variant, model.specs[variant]).items() if spec.overwritten}
      self_check = sorted(found ^ planned)
      for step in range(plan["steps"]):
        graphs[step * 7 % 3 % 2].replay()
        replays += 1
        if step % 100 == 50:
          model()
          eager += 1
        if step % 150 == 75:
          assert int(another_capture()[0].item()) == 50
          captures += 1
        if plan["switches"] and step % 40 in (20, 30):
          torch.cuda.synchronize()  # replays are far behind this loop, and the switch is for those that come
          switches.append((4 + replays + eager, step % 40 == 20))
          if step % 40 == 20:
            taps.disable("stats.*:stats", "hash.*:hash")
          else:
            taps.enable()
      torch.cuda.synchronize()
      produced_s = time.monotonic() - begin_s
      taps.flush(60)
      counters = taps.counters()
      taps.close()
      # After its end nothing is written, and nothing breaks.
      graphs[0].replay()
      torch.cuda.synchronize()
      report = json.loads(reader.stdout.readline())
      reader.wait(60)
    finally:
      if reader is not None and reader.poll() is None:
        reader.kill()
        reader.wait()
  read, off = report.pop("counts"), set(report.pop("off"))
  print_line(f"{plan['name']}: {report}, producer {counters}, reader {read}, taps.error {taps.error}")
  equal = all(read[key] == counters[key] for key in ("steps", "dropped_device", "dropped_host", "unwanted")) and (
      read["records"] + read["missed"] == counters["records"])
  steps_right = counters["steps"] == 4 + replays + eager
  dropped = counters["dropped_device"] + counters["dropped_host"]
  passed = not report["wrong"] and equal and steps_right and not self_check and read["records"] == report["records"] and taps.error is None
  late_switches = wrong_switches(switches, off, counters["steps"])
  passed = passed and (dropped > 0) == plan["overflows"] and bool(off) == plan["switches"] and not late_switches and report["records"] > 10
  return dict(passed=passed, **report, equal_counts=equal, steps=counters["steps"], steps_right=steps_right, dropped=dropped,
              unwanted=counters["unwanted"], missed=read["missed"], replays=replays, eager=eager, other_captures=captures,
              self_check_differs=self_check[:5], switches=len(switches), steps_off=len(off),
              late_switches=late_switches[:10], produced_s=round(produced_s, 1), took_s=round(time.monotonic() - begin_s, 1),
              error=taps.error)


def plans(quick, only, steps):
  steps = steps or (60 if quick else 500)
  usual = dict(taps=120, rows=0, row_kind="none", chosen=1, steps=steps, device_mib=256, host_mib=3072, reader_s=0, switches=False,
               overflows=False, flat=False)
  rows = dict(rows=13, chosen=9, device_mib=128)  # which comes to its end more than twice
  yield "whole", dict(usual, seed=1)
  yield "flat", dict(usual, **dict(rows, chosen=13), seed=17, row_kind="first", flat=True)
  yield "large", dict(usual, seed=3, taps=400, steps=steps // 5)
  yield "rows-i64", dict(usual, **rows, seed=5, row_kind="i64")
  yield "rows-i32", dict(usual, **rows, seed=7, row_kind="i32")
  yield "rows-first", dict(usual, **dict(rows, chosen=13), seed=9, row_kind="first")
  yield "switched", dict(usual, seed=11, switches=True)
  if only and any(name.startswith("tiny") for name in only):  # of taps-sanitize
    tiny = dict(usual, taps=60, steps=20, host_mib=256)
    yield "tiny", dict(tiny, seed=1)
    yield "tiny-rows", dict(tiny, **dict(rows, row_kind="i64"), seed=5)
    yield "tiny-flat", dict(tiny, seed=17, flat=True)
    yield "tiny-first", dict(tiny, **dict(rows, row_kind="first", chosen=13), seed=9)
  yield "blocked", dict(usual, seed=15, device_mib=16, host_mib=24, reader_s=.02, full="block:20000")
  yield "overflows", dict(usual, seed=13, device_mib=16, host_mib=24, reader_s=.05, overflows=True)


def run(results, program, quick, only=None, steps=None):
  failed = 0
  for name, plan in plans(quick, only, steps):
    if only and name not in only:
      continue
    plan.update(name=name, run=f"match-{name}-{int(time.time())}")
    results.print_line(f"taps-match {name}")
    try:
      row = one(plan, program, results.print_line)
    except (observe.Error, RuntimeError, AssertionError, ValueError, subprocess.TimeoutExpired) as error:
      row = dict(passed=False, error=f"{type(error).__name__}: {error}"[:1500])
    results.add("taps-match", name, **row)
    failed += not row["passed"]
    torch.cuda.empty_cache()
  return failed
