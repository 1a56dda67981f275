"""taps-agree: three ranks on one card, in processes of their own, whose hash taps r2cc-observe compares while they run."""

import json
import re
import subprocess
import sys
import time

import torch

from r2cc import observe
from tests.observe.gpu import card
from tests.observe.gpu import values

RANKS = 3


class Model(torch.nn.Module):
  """What ranks share to the bit, as after an AllReduce; `flip` is exclusive-ored into one word of one point."""

  def __init__(self):
    super().__init__()
    self.numbers = torch.arange(65536, dtype=torch.int64, device=card.DEVICE)
    self.ids = torch.zeros(1, dtype=torch.int64, device=card.DEVICE)
    self.flip = torch.zeros(65536, dtype=torch.int64, device=card.DEVICE)
    self.points = torch.nn.ModuleList([torch.nn.Identity() for _ in range(8)])

  def forward(self):
    for key, point in enumerate(self.points):
      data = values.words(self.numbers, self.ids, key)
      point(data ^ self.flip if key == 5 else data)
    self.ids.add_(1)


def rank(plan):
  """In a process of its own: steps without a flip; on a line of input a flip of one bit, one step, and steps without."""
  model = Model()
  policy = observe.Policy(host_mib=64)
  with torch.no_grad(), observe.attach(model, ["points.*:hash"], run=plan["run"], rank=plan["rank"], device=card.ATTACH,
                                       policy=policy) as taps:
    graph = card.capture(model, 2)
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    for step in range(plan["steps"]):
      graph.replay()
      if step % 64 == 0:
        card.synchronize()
        time.sleep(.002)
    taps.flush(60)
    before = taps.counters()
    print(json.dumps(before), flush=True)
    sys.stdin.readline()
    if plan["rank"] == 1:
      model.flip[12345] = 1 << 17
    graph.replay()
    card.synchronize()
    # Steps count from 0. The counters may not have this one yet.
    print(json.dumps(dict(step=before["steps"], at_ns=time.monotonic_ns())), flush=True)
    model.flip.zero_()
    for _ in range(100):
      graph.replay()
    card.synchronize()
    taps.flush(60)
    sys.stdin.readline()


def run(results, program, quick, only=None):
  del only
  name, begin_s = f"agree-{time.monotonic_ns()}", time.monotonic()
  plan = dict(run=name, steps=1000 if quick else 10_000)
  ranks, watcher = [], None

  def to_all(line="\n"):
    for process in ranks:
      process.stdin.write(line)
      process.stdin.flush()

  try:
    ranks = [card.start(program, "_rank", json.dumps(dict(plan, rank=number))) for number in range(RANKS)]
    for process in ranks:
      assert card.line_of(process) == "ready"
    watcher = subprocess.Popen([sys.executable, program, "_tool", "agree", "--follow", name], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    time.sleep(1)
    to_all()
    counters = [card.line_of(process) for process in ranks]
    time.sleep(1)
    early = watcher.poll() is not None  # it has ended, so it saw what is not there
    to_all()
    flips = [card.line_of(process) for process in ranks]
    line = watcher.stdout.readline().strip()
    named_s = time.monotonic() - max(flip["at_ns"] for flip in flips) / 1e9
    code = watcher.wait(30)
    to_all()
  except (RuntimeError, AssertionError, subprocess.TimeoutExpired, OSError) as error:
    results.add("taps-agree", "flip", passed=False, error=f"{type(error).__name__}: {error}"[:1500])
    return 1
  finally:
    card.end(*ranks, *([watcher] if watcher else []))
  expected = f"step {flips[1]['step']}: points.5:hash: rank 1 of {name} differs"
  same_steps = len({flip["step"] for flip in flips}) == 1
  passed = not early and same_steps and code == 1 and line == expected and named_s <= 1
  results.print_line(f"agree: {line!r}, expected {expected!r}, {counters}")
  results.add("taps-agree", "flip", passed=passed, steps_without_flip=[one["steps"] for one in counters], false=int(early),
              named=line == expected, line=re.sub(r"agree-\d+", "RUN", line)[:300], named_s=round(named_s, 3), code=code,
              took_s=round(time.monotonic() - begin_s, 1))
  return 0 if passed else 1
