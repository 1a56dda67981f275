"""taps-readers: records of 16 B to 256 KiB from a graph of the gather alone, to readers that are slow, stopped, killed and back; jobs that
are killed, whose records `hold` keeps; and how long a record takes to another process."""

import json
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import torch

from r2cc import observe
from r2cc.observe import _library
from tests.observe.gpu import card
from tests.observe.gpu import values
from tests.observe.gpu.readers import DATA_KEY, SIZE_KEY, Raw


class Model(torch.nn.Module):
  """Each step has as many rows of 16 bytes as its number says, each a function of step and row."""

  def __init__(self, rows_most):
    super().__init__()
    self.rows_most = rows_most
    self.numbers = torch.arange(2 * rows_most, dtype=torch.int64, device=card.DEVICE)
    self.ids = torch.zeros(1, dtype=torch.int64, device=card.DEVICE)
    self.count = torch.zeros(1, dtype=torch.int64, device=card.DEVICE)
    self.data = torch.nn.Identity()
    self.set_count()

  def rows(self):
    return (None, self.count if card.ON_GPU else lambda: int(self.count))

  def set_count(self):
    """From 1 row on: each power of two below the most is as likely."""
    bits = values.words(self.numbers[:1], self.ids, SIZE_KEY)
    power = values.below(bits, self.rows_most.bit_length())
    self.count.copy_(1 + values.below(bits >> 16, 1 << 16) * ((1 << power) - 1) // (1 << 16))

  def forward(self):
    data = values.words(self.numbers, self.ids, DATA_KEY).view(self.rows_most, 2)
    self.ids.add_(1)
    self.set_count()
    return self.data(data)


HABITS = ("quick", "slow", "slow", "copies")


def crowd(plan, program, print_line):
  begin_s, chance = time.monotonic(), random.Random(plan["seed"])
  model = Model(plan["rows_most"])
  policy = observe.Policy(device_mib=4, host_mib=plan["host_mib"], reader_timeout_ms=20)
  readers, coming, stopped, kills, stops = [None] * len(HABITS), set(), {}, 0, 0

  def begin_reader(place):
    its = dict(plan, habit=HABITS[place], seed=plan["seed"] + kills * 16 + place)
    readers[place] = card.start(program, "_crowd", json.dumps(its))
    return readers[place]

  try:
    with torch.no_grad(), observe.attach(model, ["data"], run=plan["run"], device=card.ATTACH, rows=model.rows(), policy=policy) as taps:
      # A layout is known after the first step, so a reader finds the run.
      graph = card.capture(model, 2)
      for place in range(len(HABITS)):
        assert card.line_of(begin_reader(place)) == "ready"
      for step in range(plan["steps"]):
        graph.replay()
        if step % 128 != 0:
          continue
        if step % 1024 == 0:
          card.synchronize()
        now = time.monotonic()
        for place in [place for place, until in stopped.items() if until < now]:
          readers[place].send_signal(signal.SIGCONT)
          del stopped[place]
        place = chance.randrange(len(HABITS))
        if chance.random() < plan["stop_chance"] and place not in stopped:
          readers[place].send_signal(signal.SIGSTOP)
          stopped[place] = now + chance.random() * .08
          stops += 1
        elif chance.random() < plan["kill_chance"]:
          stopped.pop(place, None)
          card.end(readers[place])
          kills += 1
          begin_reader(place)  # it comes back meanwhile
          coming.add(place)
      card.synchronize()
      produced_s = time.monotonic() - begin_s
      for place in stopped:
        readers[place].send_signal(signal.SIGCONT)
      for place in coming:  # all have the run open before it ends
        assert card.line_of(readers[place]) == "ready"
      taps.flush(60)
      counters, error = taps.counters(), taps.error
    reports = [card.line_of(reader) for reader in readers]
  finally:
    card.end(*[reader for reader in readers if reader is not None])
  print_line(f"{plan['run']}: producer {counters}, readers {reports}")
  dropped = counters["dropped_device"] + counters["dropped_host"]
  most = max(report["bytes"] for report in reports)
  row = dict(steps=counters["steps"], records=counters["records"], dropped=dropped, dropped_device=counters["dropped_device"],
             dropped_host=counters["dropped_host"], dropped_percent=round(100 * dropped / counters["steps"], 1),
             read=sum(report["records"] for report in reports), torn=sum(report["torn"] for report in reports),
             equal_counts=all(card.counts_are_equal(report["counts"], counters) for report in reports),
             wraps_at_least=most // (plan["host_mib"] << 20), cut_off=counters["cut_off"], kills=kills, stops=stops,
             produced_s=round(produced_s, 1), took_s=round(time.monotonic() - begin_s, 1), error=error)
  large = plan["steps"] >= 1_000_000
  passed = (row["torn"] == 0 and row["equal_counts"] and error is None and row["read"] > 0 and counters["steps"] == plan["steps"] + 2 and
            (not large or (dropped * 20 >= counters["steps"] and row["wraps_at_least"] >= 100 and row["cut_off"] >= 20)))
  return dict(passed=passed, **row)


def job(plan):
  """In a process of its own, until it is killed. Says when so many steps are done."""
  model = Model(plan["rows_most"])
  policy = observe.Policy(device_mib=64, host_mib=plan["host_mib"])
  with torch.no_grad():
    taps = observe.attach(model, ["data"], run=plan["run"], device=card.ATTACH, rows=model.rows(), policy=policy, files=plan["files"])
    graph = card.capture(model, 2)
    for step in range(1_000_000):
      graph.replay()
      card.synchronize()
      time.sleep(0.0005)
      if step == 300:
        taps.flush(60)
        print(json.dumps("ready"), flush=True)


def kill_one(plan, program):
  """A job that is killed at random, and what `hold` has of it."""
  running, holder = card.start(program, "_job", json.dumps(plan)), None
  try:
    assert card.line_of(running) == "ready"
    holder = subprocess.Popen([sys.executable, program, "_tool", "hold", plan["run"]], stdout=subprocess.PIPE, text=True)
    assert "holding" in holder.stdout.readline()
    time.sleep(random.Random(plan["seed"]).random() * .5)
    running.kill()
    running.wait()
    raw = Raw(plan["run"], False)
    steps, broken, found = [], 0, None
    while found != _library.END:
      found = raw.next()
      assert found != _library.NOTHING, "the killed job's ring does not end"
      if found == _library.RECORD:
        steps.append(raw.record.step)
        broken += not raw.is_whole(plan["rows_most"])
    run, = observe._library.find(plan["run"])  # pylint: disable=protected-access
    last = steps[-100:]
    # Those of the last steps that have no record were dropped and counted, or one was on its way.
    row = dict(steps=run.counts.steps, dropped=run.counts.dropped_device + run.counts.dropped_host, whole=len(steps) - broken,
               broken=broken,
               last_in_a_row=bool(last) and last == list(range(last[0], last[0] + len(last))),
               missing_at_the_end=run.counts.steps - steps[-1] - 1 if steps else None)
    if plan["files"] is not None:
      names = [path.name for path in pathlib.Path(plan["files"]).iterdir()]
      verified = subprocess.run([sys.executable, program, "_tool", "verify", plan["files"]], capture_output=True, text=True, timeout=120)
      row.update(files=len(names), files_whole=verified.returncode == 0, files_line=(verified.stdout or verified.stderr).strip()[:200])
    return row
  finally:
    card.end(*[process for process in (running, holder) if process is not None])


def kills(plan, program, print_line):
  """Several at a time."""
  import concurrent.futures  # pylint: disable=import-outside-toplevel
  begin_s = time.monotonic()
  with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(5) as pool:
    plans = [dict(plan, run=f"{plan['run']}-{i}", seed=plan["seed"] + i, files=os.path.join(folder, str(i)) if i % 5 == 0 else None)
             for i in range(plan["kills"])]
    rows = list(pool.map(lambda its: kill_one(its, program), plans))
  for row in rows:
    print_line(f"kill: {row}")
  passed = all(row["broken"] == 0 and row["whole"] >= 100 and row["last_in_a_row"] and row["missing_at_the_end"] <= 1 and
               row.get("files_whole", True) for row in rows)
  return dict(passed=passed, kills=len(rows), whole_least=min(row["whole"] for row in rows), broken=sum(row["broken"] for row in rows),
              in_a_row=sum(row["last_in_a_row"] for row in rows), missing_at_the_end=[row["missing_at_the_end"] for row in rows],
              files=[row["files_line"] for row in rows if "files_line" in row], took_s=round(time.monotonic() - begin_s, 1))


def bare_copies(size, steps, is_shared):
  """us of copies of that size from the GPU by PyTorch, to memory that CUDA has allocated or to locked pages of a memfd, as the ring is."""
  x, memory = torch.zeros(size, dtype=torch.uint8, device="cuda"), None
  if is_shared:
    file = os.memfd_create("r2cc-bare")
    os.ftruncate(file, size)
    memory = mmap.mmap(file, size)
    host = torch.frombuffer(memory, dtype=torch.uint8)
    torch.cuda.check_error(int(torch.cuda.cudart().cudaHostRegister(host.data_ptr(), size, 0)))
  else:
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
  event, us = torch.cuda.Event(), []
  for _ in range(steps):
    begin_ns = time.monotonic_ns()
    host.copy_(x, non_blocking=True)
    event.record()
    while not event.query():
      pass
    us.append((time.monotonic_ns() - begin_ns) / 1000)
    time.sleep(max(.002, size / 10e9))
  if is_shared:
    torch.cuda.check_error(int(torch.cuda.cudart().cudaHostUnregister(host.data_ptr())))
  us.sort()
  return [round(us[len(us) // 2], 1), round(us[int(len(us) * .99)], 1), round(us[-1], 1)]


def latency(plan, program, print_line):
  """From the step's end, as the job sees it by polling an event, to the other process."""
  size, steps = plan["bytes"], plan["steps"]
  model = torch.nn.Sequential(torch.nn.Identity())
  x = torch.zeros(size, dtype=torch.uint8, device=card.DEVICE)
  run, ends, watcher = plan["run"], {}, None
  policy = observe.Policy(device_mib=max(64, 3 * size >> 20), host_mib=max(512, 4 * size >> 20), reader_timeout_ms=60_000)
  try:
    with torch.no_grad(), observe.attach(model, ["0"], run=run, device=card.ATTACH, policy=policy) as taps:
      graph = card.capture(lambda: model(x), 2)
      watcher = card.start(program, "_watch", json.dumps(plan))
      assert card.line_of(watcher) == "ready"
      event = torch.cuda.Event() if card.ON_GPU else None
      taps.flush(60)  # the device's ring takes two of the largest steps
      for step in range(2, 2 + steps):
        graph.replay()
        if event is not None:
          event.record()
          while not event.query():
            pass
        ends[step] = time.monotonic_ns()
        time.sleep(max(.002, size / 10e9))
      taps.flush(60)
    times = {int(step): at for step, at in card.line_of(watcher).items()}
  finally:
    if watcher is not None:
      card.end(watcher)
  us = sorted((times[step] - ends[step]) / 1000 for step in ends if step in times)
  print_line(f"latency {size}: {len(us)} of {steps}")
  p99_us = us[int(len(us) * .99)]
  # What such a copy alone takes, next to it: p50, p99, greatest.
  bare = {}
  if card.ON_GPU and size >= 16 << 20:
    bare = {name: bare_copies(size, steps // 2, is_shared) for name, is_shared in (("bare_us", False), ("bare_memfd_us", True))}
  return dict(passed=len(us) == steps and p99_us <= plan["most_us"], bytes=size, steps=len(us), p50_us=round(us[len(us) // 2], 1),
              p99_us=round(p99_us, 1), greatest_us=round(us[-1], 1), asked_us=plan["most_us"], **bare)


def run(results, program, quick, only=None):
  stamp = time.monotonic_ns()
  parts = [("crowd", crowd, dict(run=f"crowd-{stamp}", rows_most=16384, host_mib=16, seed=1, steps=20_000 if quick else 1_000_000,
                                 stop_chance=.3 if quick else .05, kill_chance=.1 if quick else .004))]
  parts.append(("kills", kills, dict(run=f"kill-{stamp}", rows_most=16384 if not card.ON_GPU else 262144, host_mib=512, seed=2,
                                     kills=2 if quick else 10)))
  for size, most_us in ((16 << 10, 1000), (256 << 10, 1000), (1 << 20, 1000), (16 << 20, 2000), (64 << 20, 2000)):
    parts.append((f"latency-{size >> 10}k", latency, dict(run=f"latency-{size}-{stamp}", bytes=size, most_us=most_us,
                                                          steps=100 if quick else 1000)))
  failed = 0
  for name, function, plan in parts:
    if only and name not in only and name.partition("-")[0] not in only:
      continue
    results.print_line(f"taps-readers {name}")
    try:
      row = function(plan, program, results.print_line)
    except (observe.Error, RuntimeError, AssertionError, ValueError, OSError, subprocess.TimeoutExpired) as error:
      row = dict(passed=False, error=f"{type(error).__name__}: {error}"[:1500])
    results.add("taps-readers", name, **row)
    failed += not row["passed"]
    card.forget()
  return failed
