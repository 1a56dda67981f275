"""taps-rows: requests that join, leave, change places and are padded at every step. Each row of each record must be of the request and the
position that a stand-in for an engine's scheduler says."""

import json
import random
import time

import numpy
import torch

from r2cc import observe
from tests.observe.gpu import card
from tests.observe.gpu import values

ROWS, TOKENS, WORDS, BLOCK = 64, 192, 16, 4096


class Schedule:
  """What an engine's batches are, step by step, from a seed: the same on both sides."""

  def __init__(self, seed):
    self.chance, self.next_request, self.batch = random.Random(seed), 0, []

  def step(self):
    """(request, position) by row."""
    chance, batch = self.chance, self.batch
    for row in batch:
      row[1] += 1
    for _ in range(chance.randrange(3)):
      if batch:
        batch.pop(chance.randrange(len(batch)))
    while len(batch) < ROWS and chance.random() < (0.9 if len(batch) < ROWS // 2 else 0.5):
      batch.insert(chance.randrange(len(batch) + 1), [self.next_request, chance.randrange(100)])
      self.next_request += 1
    if chance.random() < .5 and len(batch) > 1:
      i, j = chance.randrange(len(batch)), chance.randrange(len(batch))
      batch[i], batch[j] = batch[j], batch[i]
    if chance.random() < .02:
      chance.shuffle(batch)
    return batch


def places_of(count, step):
  """Where the rows lie among the tokens of the step, for the variant that picks some of them: each of its own, in no order."""
  return (numpy.arange(count) * 97 + step * 31) % TOKENS  # 97 has no divisor in common with TOKENS


class Engine(torch.nn.Module):
  """A step of a model whose hidden state says of which request and position each row is. The batch of the next step is written within it,
  as engines do; what is not a row of the step holds other numbers."""

  def __init__(self, by_index):
    super().__init__()
    self.by_index = by_index
    zeros = lambda *shape: torch.zeros(*shape, dtype=torch.int64, device=card.DEVICE)  # noqa: E731
    self.table = zeros(BLOCK + 1, 3 * ROWS + 1)  # of each step: requests, positions, places, count
    self.number, self.token_index = zeros(1), torch.arange(TOKENS, dtype=torch.int64, device=card.DEVICE)
    self.requests, self.positions, self.places, self.count = zeros(ROWS), zeros(ROWS), zeros(ROWS), zeros(1)
    self.columns = torch.arange(WORDS, dtype=torch.int64, device=card.DEVICE)
    self.hidden = torch.nn.Identity()

  def rows(self):
    return (self.places if self.by_index else None, self.count if card.ON_GPU else lambda: int(self.count))

  def load(self):
    """The batch of step `number` of the table."""
    row = self.table.index_select(0, self.number)[0]
    self.requests.copy_(row[:ROWS])
    self.positions.copy_(row[ROWS:2 * ROWS])
    self.places.copy_(row[2 * ROWS:3 * ROWS])
    self.count.copy_(row[3 * ROWS:])

  def forward(self):
    keys = self.requests * 1000003 + self.positions
    rows = values.words(keys[:, None] * WORDS + self.columns, 0, 1)
    rows = torch.where((torch.arange(ROWS, device=card.DEVICE) < self.count)[:, None], rows, torch.full_like(rows, -1))
    if self.by_index:  # many tokens, a few of which are rows
      tokens = self.token_index[:, None] * self.columns
      rows = tokens.index_copy(0, self.places, rows)
    self.number.add_(1)
    self.load()
    return self.hidden(rows)


def produce(plan, program, print_line):
  engine = Engine(plan["by_index"])
  policy = observe.Policy(device_mib=64, host_mib=2048, reader_timeout_ms=60_000)
  begin_s, schedule, reader, steps = time.monotonic(), Schedule(plan["seed"]), None, 0
  tags = {"request": engine.requests, "position": engine.positions}
  try:
    with torch.no_grad(), observe.attach(engine, ["hidden"], run=plan["run"], device=card.ATTACH, tags=tags, rows=engine.rows(),
                                         policy=policy) as taps:
      reader = card.start(program, "_rows", json.dumps(plan))
      assert card.line_of(reader) == "ready"
      rows, graph, last = 0, None, [0] * (3 * ROWS + 1)
      while rows < plan["rows"]:
        block = numpy.zeros((BLOCK + 1, 3 * ROWS + 1), numpy.int64)
        block[0] = last
        for at in range(1, BLOCK + 1):
          batch = schedule.step()
          count = len(batch)
          block[at, :count] = [row[0] for row in batch]
          block[at, ROWS:ROWS + count] = [row[1] for row in batch]
          # Beyond the rows are places, too, of which none may be one of theirs.
          block[at, 2 * ROWS:3 * ROWS] = places_of(ROWS, steps + at)
          block[at, -1] = count
        if graph is None:
          block[0] = block[1]
          block[0, 2 * ROWS:3 * ROWS] = places_of(ROWS, 0)
        rows += int(block[:BLOCK, -1].sum())
        card.synchronize()
        engine.table.copy_(torch.from_numpy(block))
        engine.number.zero_()
        done = 0
        if graph is None:
          engine.load()
          graph = card.capture(engine, 2)
          done = 2
          rows = int(block[:BLOCK, -1].sum())
        for at in range(done, BLOCK):
          graph.replay()
          if at % 64 == 0:
            card.synchronize()  # nothing is to be dropped here
        last = block[BLOCK]
        steps += BLOCK
      card.synchronize()
      taps.flush(60)
      counters, error = taps.counters(), taps.error
    report = card.line_of(reader)
  finally:
    if reader is not None:
      card.end(reader)
  read = report.pop("counts")
  print_line(f"{plan['run']}: {report}, producer {counters}, reader {read}")
  passed = (not report["wrong"] and report["rows"] >= .99 * plan["rows"] and card.counts_are_equal(read, counters) and error is None and
            report["joined"] > 0 and report["left"] > 0 and report["moved"] > 0 and report["padded"] > 0)
  return dict(passed=passed, **report, steps=steps, records=counters["records"],
              dropped=counters["dropped_device"] + counters["dropped_host"], equal_counts=card.counts_are_equal(read, counters),
              took_s=round(time.monotonic() - begin_s, 1), error=error)


def verify(plan):
  """In a process of its own: the schedule anew, and each row of each record against it."""
  reader, schedule = observe.read(plan["run"]), Schedule(plan["seed"])
  print(json.dumps("ready"), flush=True)
  report = dict(rows=0, wrong_rows=0, wrong=[], joined=0, left=0, moved=0, padded=0)
  columns, before, at = numpy.arange(WORDS, dtype=numpy.int64), {}, -1
  requests = positions = numpy.zeros(0, numpy.int64)

  def advance(step):
    nonlocal at, before, requests, positions
    while at < step:
      at += 1
      if at == 1:  # the first two steps have one batch: the table begins with it
        continue
      batch = schedule.step()
      now = {request: row for row, (request, _) in enumerate(batch)}
      report["joined"] += len(now.keys() - before.keys())
      report["left"] += len(before.keys() - now.keys())
      report["moved"] += sum(before.get(request, row) != row for request, row in now.items())
      before = now
      requests = numpy.array([row[0] for row in batch], numpy.int64)
      positions = numpy.array([row[1] for row in batch], numpy.int64)

  for step in reader.steps():
    advance(step.number)
    count = len(requests)
    report["padded"] += ROWS - count
    tags = [numpy.frombuffer(step.tags[name].data, numpy.int64)[:count] for name in ("request", "position")]
    found = numpy.frombuffer(step["hidden"].data, numpy.int64).reshape(-1, WORDS)
    with numpy.errstate(over="ignore"):
      expected = values.words((requests * 1000003 + positions)[:, None] * WORDS + columns, numpy.int64(0), 1)
    report["rows"] += count
    if step.rows != count or len(found) != count or not (numpy.array_equal(tags[0], requests) and numpy.array_equal(tags[1], positions)
                                                         and numpy.array_equal(found, expected)):
      bad = int((found != expected).any(axis=1).sum()) if found.shape == expected.shape else max(count, len(found))
      report["wrong_rows"] += max(bad, 1)
      if len(report["wrong"]) < 5:
        report["wrong"].append(f"step {step.number}: {step.rows} rows instead of {count}, requests {tags[0][:4].tolist()} instead of "
                               f"{requests[:4].tolist()}, {bad} rows of others")
  report["counts"] = reader.counts()
  reader.close()
  print(json.dumps(report), flush=True)


def run(results, program, quick, only=None):
  failed = 0
  for name, by_index in (("padded", False), ("picked", True)):
    if only and name not in only:
      continue
    plan = dict(run=f"rows-{name}-{time.monotonic_ns()}", by_index=by_index, seed=5 + by_index, rows=200_000 if quick else 5_000_000)
    results.print_line(f"taps-rows {name}")
    try:
      row = produce(plan, program, results.print_line)
    except (observe.Error, RuntimeError, AssertionError, ValueError) as error:
      row = dict(passed=False, error=f"{type(error).__name__}: {error}"[:1500])
    results.add("taps-rows", name, **row)
    failed += not row["passed"]
    card.forget()
  return failed
