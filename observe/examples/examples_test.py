"""The examples that need what no machine of the tests has: they compile, and the worker for vLLM maps the rows of a substitute engine."""

import os
import pathlib
import random
import sys
import types
import unittest
import warnings

from bazel import unittest_main
from observe.python import stand_in
from r2cc import observe

ROWS, STEPS = 48, 2000


class Buffer(stand_in.Tensor):
  """As much of torch.Tensor as the worker writes."""

  def __getitem__(self, part):
    self.part = part  # pylint: disable=attribute-defined-outside-init
    return self

  def copy_(self, numbers):
    assert len(numbers.storage) == len(range(*self.part.indices(len(self.storage))))
    self.storage[self.part] = numbers.storage

  def fill_(self, number):
    self.storage[0] = number

  def zero_(self):
    self.fill_(0)

  def __int__(self):
    return self.storage[0]


class Worker:
  """As much of vLLM's worker and runner as the recipe uses. Requests join, leave and swap their places in the batch."""

  def __init__(self, config):
    self.vllm_config, self.device, self.rank, self.warm = config, "cpu", 0, False
    self.model = stand_in.Module(layer=stand_in.Module(lambda tensor: tensor))
    self.batch = types.SimpleNamespace(req_ids=[], num_reqs=0, num_computed_tokens_cpu=[])
    self.model_runner = types.SimpleNamespace(input_batch=self.batch, _prepare_inputs=self._prepare)

  def get_model(self):
    return self.model

  def compile_or_warm_up_model(self):
    self.warm = True
    self.model(stand_in.Tensor([0] * ROWS, (ROWS, 1)))

  def _prepare(self, scheduled):
    """Reorders the batch, as the runner's does."""
    self.batch.req_ids = scheduled.order + ["stale"]
    self.batch.num_reqs = len(scheduled.order)
    self.batch.num_computed_tokens_cpu = [scheduled.computed[request] for request in scheduled.order] + [99]

  def execute_model(self, scheduled):
    if scheduled.order:
      self.model_runner._prepare_inputs(scheduled)  # pylint: disable=protected-access
    values = [value_of(request, scheduled.computed[request] + at)
              for request in scheduled.order for at in range(scheduled.num_scheduled_tokens[request])]
    padded = values + [-1.0] * (ROWS - len(values))
    self.model(stand_in.Tensor(padded, (len(padded), 1)))

  def shutdown(self):
    self.warm = False


def value_of(request, position):
  """What the model computes for a token: exact as float32."""
  return int(request) * 1000 + position


def load_worker(folder):
  torch = types.ModuleType("torch")
  torch.int64 = "int64"
  torch.zeros = lambda count, dtype, device: Buffer([0] * count, dtype=dtype)
  torch.arange = lambda count, dtype, device: Buffer(range(count), dtype=dtype)
  torch.tensor = lambda numbers, dtype: Buffer(numbers, dtype=dtype)
  engine = types.ModuleType("vllm.v1.worker.gpu_worker")
  engine.Worker = Worker
  for name in ("vllm", "vllm.v1", "vllm.v1.worker"):
    sys.modules[name] = types.ModuleType(name)
  sys.modules.update({"torch": torch, "vllm.v1.worker.gpu_worker": engine})
  module = types.ModuleType("vllm_worker")
  text = (folder / "vllm_worker.py").read_text(encoding="utf-8")
  exec(compile(text, "vllm_worker.py", "exec"), module.__dict__)  # pylint: disable=exec-used
  for name in ("torch", "vllm", "vllm.v1", "vllm.v1.worker", "vllm.v1.worker.gpu_worker"):
    del sys.modules[name]
  return module


def config_of(run="vllm", **more):
  return types.SimpleNamespace(**{
      "speculative_config": None, "compilation_config": types.SimpleNamespace(mode=0),
      "parallel_config": types.SimpleNamespace(pipeline_parallel_size=1),
      "additional_config": {"taps": ["layer"], "taps_run": run, "taps_rows": ROWS}, **more})


class ExamplesTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    stand_in.skip_if_sanitized()
    cls.folder = pathlib.Path(unittest_main.test_args()[0]).resolve().parent
    cls.module = load_worker(cls.folder)

  def test_they_compile_and_the_worker_states_first_that_it_was_not_run(self):
    for name in ("generate.py", "vllm_worker.py"):
      text = (self.folder / name).read_text(encoding="utf-8")
      compile(text, name, "exec")
      self.assertEqual("was not run" in text.splitlines()[0], name == "vllm_worker.py")

  def test_every_row_is_its_request_s(self):
    warnings.simplefilter("ignore")  # on the host a step that is too large is a warning, too
    run, chance = f"vllm-{os.getpid()}", random.Random(7)
    worker = self.module.TappedWorker(config_of(run))
    worker.compile_or_warm_up_model()
    self.assertTrue(worker.warm)
    reader = observe.read(run)
    live, born, expected, too_large = {}, 0, [], 0
    for _ in range(STEPS):
      while len(live) < 40 and chance.random() < 0.5:
        born += 1
        live[str(born)] = 0
      for request in [request for request in live if chance.random() < 0.05]:
        del live[request]
      order = chance.sample(list(live), chance.randint(0, len(live)))
      counts = {request: chance.choice((1, 1, 1, 1, 5)) for request in sorted(order)}
      worker.execute_model(types.SimpleNamespace(order=order, num_scheduled_tokens=counts, computed=dict(live)))
      rows = [(request, live[request] + at) for request in order for at in range(counts[request])]
      too_large += len(rows) > ROWS
      if len(rows) <= ROWS:
        expected.append(rows)
      for request in order:
        live[request] += counts[request]
    worker.shutdown()
    self.assertFalse(worker.warm)
    with reader:
      steps = [item for item in reader if isinstance(item, observe.Step)][-len(expected):]
      self.assertGreaterEqual(reader.counts()["unwanted"], too_large)
    self.assertEqual(len(steps), len(expected))
    self.assertGreater(too_large, 0)
    self.assertGreater(sum(not rows for rows in expected), 0)
    wrong = 0
    for step, rows in zip(steps, expected):
      named = zip(step.tags["request"].numbers()[:step.rows], step.tags["position"].numbers()[:step.rows], step["layer"].numbers())
      wrong += step.rows != len(rows)
      wrong += list(named) != [(self.module.number_of(request), position, value_of(request, position)) for request, position in rows]
    self.assertEqual(wrong, 0)

  def test_unsupported_configurations_are_refused(self):
    for more in ({"speculative_config": object()}, {"compilation_config": types.SimpleNamespace(mode=3)},
                 {"parallel_config": types.SimpleNamespace(pipeline_parallel_size=2)}):
      worker = self.module.TappedWorker(config_of(**more))
      with self.assertRaisesRegex(RuntimeError, "^tensor taps: "):
        worker.compile_or_warm_up_model()
      self.assertFalse(worker.warm)
