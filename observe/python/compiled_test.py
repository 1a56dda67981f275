"""Taps of a compiled model, over a substitute for PyTorch: hooks run as if Dynamo traced them, then the operator with what they left.

The substitute does not trace. Whether Dynamo takes the hooks is seen by the case taps-compile of //tests/observe/gpu."""

import os
import sys
import types
import unittest
import warnings

from observe.python import stand_in
from r2cc import observe

SMALL = observe.Policy(host_mib=1)


class Torch(types.ModuleType):
  """As much of torch as taps of a compiled model look at."""

  def __init__(self):
    super().__init__("torch")
    self.traces, self.calls = False, []
    self.Tensor, self.uint8 = stand_in.Tensor, "uint8"
    self.compiler = types.SimpleNamespace(is_compiling=lambda: self.traces)
    self._dynamo = types.SimpleNamespace(mark_static_address=lambda tensor: None)
    self.library = types.SimpleNamespace(custom_op=self.custom_op)

  def zeros(self, count, dtype, device):
    return stand_in.Tensor([0] * count, dtype=dtype, device=device)

  def custom_op(self, name, mutates_args):
    assert (name, mutates_args) == ("r2cc_observe::step", ("anchor",))

    def decorator(function):
      def operator(*arguments):
        self.calls.append((function, arguments))
      operator.register_fake = lambda fake: None
      return operator
    return decorator

  def traced(self, model, *arguments):
    """What runs each time that the compiled model does."""
    self.traces = True
    try:
      model(*arguments)
    finally:
      self.traces = False
    (function, given), = self.calls
    self.calls.clear()
    return lambda: function(*given)


class CompiledTest(unittest.TestCase):
  number = 0

  @classmethod
  def setUpClass(cls):
    stand_in.skip_if_sanitized()
    cls.torch = sys.modules["torch"] = Torch()

  @classmethod
  def tearDownClass(cls):
    del sys.modules["torch"]

  def setUp(self):
    warnings.simplefilter("error")
    CompiledTest.number += 1
    self.run_name = f"compiled-{os.getpid()}-{self.number}"

  def read(self):
    return [item for item in observe.read(self.run_name, register=False, follow=False) if isinstance(item, observe.Step)]

  def test_each_run_of_the_operator_is_a_step(self):
    x = stand_in.Tensor([1, 2])
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor), b=stand_in.Module(lambda tensor: observe.point("named", tensor)))
    with observe.attach(model, ["{a,b}", "a:stats", "named"], run=self.run_name, policy=SMALL) as taps:
      model(x)
      run = self.torch.traced(model, x)
      for number in range(5):
        x.storage[0] = 10 * number
        run()
      self.assertEqual(taps.counters()["steps"], 6)
      steps = self.read()
    self.assertEqual([sorted(step.taps) for step in steps], [["a", "a:stats", "b", "named"]] * 6)
    self.assertEqual([step["named"].tolist() for step in steps[1:]], [[10 * number, 2] for number in range(5)])

  def test_an_output_that_a_later_layer_overwrites_is_copied_at_its_point(self):
    x = stand_in.Tensor([1, 2])
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor), b=stand_in.in_place(10))
    with observe.attach(model, ["*"], run=self.run_name, policy=SMALL) as taps:
      model(x)
      self.assertEqual(taps.self_check, {"a": "inline", "b": "late"})
      x.storage[0] = 3
      self.torch.traced(model, x)()
      steps = self.read()
    self.assertEqual([(step["a"].tolist(), step["b"].tolist()) for step in steps[-1:]], [([3, 20], [30, 200])])

  def test_tags_and_rows_are_those_at_the_steps_begin(self):
    ids, count = stand_in.Tensor([7], dtype="int64"), stand_in.Tensor([2], dtype="int64")

    def forward(tensor):
      ids.storage[0] += 1
      count.storage[0] = 1
      return tensor
    model = stand_in.Module(a=stand_in.Module(forward))
    x = stand_in.Tensor([1, 2, 3], (3, 1))
    with observe.attach(model, ["a"], run=self.run_name, policy=SMALL, tags={"id": ids}, rows=(None, lambda: count.storage[0])):
      model(x)
      count.storage[0] = 3
      self.torch.traced(model, x)()
      steps = self.read()
    self.assertEqual([(step.tags["id"].tolist(), step.rows) for step in steps], [([7], 2), ([8], 3)])

  def test_a_step_that_was_not_checked_is_one_line_and_no_record(self):
    warnings.simplefilter("ignore")
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    with self.assertRaisesRegex(observe.Error, "^a compiled step was not checked: run the same step once without torch.compile first$"):
      with observe.attach(model, ["a"], run=self.run_name, policy=SMALL) as taps:
        model(stand_in.Tensor([1]))
        self.torch.traced(model, stand_in.Tensor([1, 2]))()
        self.assertEqual((taps.counters()["records"], taps.counters()["unwanted"]), (1, 1))

  def test_tags_that_are_no_tensors_are_refused(self):
    warnings.simplefilter("ignore")
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    with self.assertRaisesRegex(observe.Error, "^tags and rows of a compiled model are tensors$"):
      with observe.attach(model, ["a"], run=self.run_name, policy=SMALL, tags={"id": [5]}):
        model(stand_in.Tensor([1]))
        self.torch.traced(model, stand_in.Tensor([1]))()

  def test_after_close_the_operator_does_nothing(self):
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    with observe.attach(model, ["a"], run=self.run_name, policy=SMALL) as taps:
      model(stand_in.Tensor([1]))
      run = self.torch.traced(model, stand_in.Tensor([1]))
    run()
    del taps
    run()
