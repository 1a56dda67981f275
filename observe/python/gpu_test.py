"""attach() of tensors on a GPU, over a driver that runs the kernels' code on the processor: eager, and in captured graphs."""

import array
import ctypes
import os
import threading
import time
import unittest
import warnings

from observe.python import stand_in
from r2cc import observe

SMALL = observe.Policy(host_mib=1 / 4, device_mib=1 / 8)


def setUpModule():
  stand_in.skip_if_sanitized()
  GpuTest.stub = ctypes.CDLL("observe/cuda/libstub_cuda.so")
  for name, types in (("begin_capture", (ctypes.c_uint64,)), ("end_capture", (ctypes.c_int,)), ("replay", (ctypes.c_int,)),
                      ("capture_copy", (ctypes.c_uint64,) * 4)):
    getattr(GpuTest.stub, "stub_" + name).argtypes = types
  try:
    observe.attach(stand_in.Module(), ["x"], run=run_name("probe"), device="cuda", policy=SMALL).close()
  except observe.Error as error:
    if "without nvcc" in str(error):
      raise unittest.SkipTest("needs nvcc: compiles a kernel") from None
    raise


def run_name(of):
  return f"gpu-{of}-{os.getpid()}"


def on_gpu(numbers, *arguments, **options):
  return stand_in.Tensor(numbers, *arguments, device="cuda:0", **options)


def everything(reader):
  with reader:
    items = list(reader)
    return items, reader.counts()


class GpuTest(unittest.TestCase):
  stub = None

  def setUp(self):
    warnings.simplefilter("error")

  def test_eager_steps(self):
    model = stand_in.Module(a=stand_in.scaled(2), b=stand_in.in_place(10), c=stand_in.scaled(1))
    for child in model._children.values():  # pylint: disable=protected-access
      function = child._function  # pylint: disable=protected-access
      child._function = lambda tensor, function=function: self.moved(function(tensor))  # pylint: disable=protected-access
    with observe.attach(model, ["*", "c:stats", "c:hash"], run=run_name("eager"), device="cuda:0", policy=SMALL) as taps:
      reader = observe.read(run_name("eager"))
      for number in range(1, 30):
        model(on_gpu([number, 5]))
      self.assertEqual(taps.self_check, {"a": "inline", "b": "late", "c": "late", "c:stats": "late", "c:hash": "late"})
      taps.flush()
      self.assertEqual(taps.counters()["records"], 28)
    items, counts = everything(reader)
    self.assertEqual(items[0], observe.Gap(0, 0, 0, 1, 0))
    self.assertEqual([(step.number, step["a"].tolist(), step["b"].tolist(), step["c:stats"].numbers()[0].greatest) for step in items[1:]],
                     [(number - 1, [2 * number, 10], [20 * number, 100], max(20 * number, 100)) for number in range(2, 30)])
    self.assertEqual((counts["records"], counts["unwanted"]), (28, 1))

  @staticmethod
  def moved(tensor):
    tensor.device = "cuda:0"
    return tensor

  def test_replays_of_a_captured_graph_are_steps(self):
    given, hidden, ids, later_ids = on_gpu([0] * 8), on_gpu([0] * 8), on_gpu([0], dtype="int64"), on_gpu([0], dtype="int64")
    out = on_gpu([0] * 8)
    def copies(to, source):
      def function(_):
        self.stub.stub_capture_copy(to.data_ptr(), source.data_ptr(), 4 * len(source.storage) if to is not ids else 8, 0)
        return to
      return function
    # `hidden` is overwritten by the second layer, and `ids` are the next step's before this one ends.
    model = stand_in.Module(a=stand_in.Module(copies(hidden, given)), b=stand_in.Module(copies(hidden, out)),
                            c=stand_in.Module(copies(ids, later_ids)))
    with observe.attach(model, ["a", "b"], run=run_name("graph"), device="cuda", tags={"id": ids}, policy=SMALL) as taps:
      reader = observe.read(run_name("graph"))
      given.storage[0], out.storage[0], later_ids.storage[0] = 1, 2, 7
      model(given)  # checked
      self.assertEqual(taps.self_check, {"a": "inline", "b": "late"})
      model(given)  # taken
      self.stub.stub_begin_capture(0)
      model(given)
      self.stub.stub_end_capture(1)
      taps.flush()
      self.assertEqual(taps.counters()["steps"], 2)
      for number in range(20):
        given.storage[0], out.storage[0], later_ids.storage[0] = 100 + number, 200 + number, 1000 + number
        self.stub.stub_replay(1)
        if number == 9:
          taps.flush()
          taps.disable("b")
        if number == 15:
          taps.flush()
          taps.enable()
      taps.flush()
      self.assertEqual(taps.counters()["steps"], 22)
    self.stub.stub_replay(1)
    items, _ = everything(reader)
    steps = items[2:]
    self.assertEqual([step.number for step in steps], list(range(2, 22)))
    for number, step in enumerate(steps):
      self.assertEqual(step["a"].tolist()[0], 100 + number)
      self.assertEqual(step.tags["id"].tolist(), [999 + number if number else 7])
      self.assertEqual("b" in step.taps, not 11 <= number <= 16)
      if "b" in step.taps:
        self.assertEqual(step["b"].tolist()[0], 200 + number)

  def test_a_prompt_and_a_decode_step_with_tags_and_rows_of_one_shape(self):
    ids, indices, given = on_gpu([0], dtype="int64"), on_gpu([0], dtype="int64"), []
    def change(tensor):
      ids.storage[0] = indices.storage[0] = len(given) % 2
      given.append(tensor)
      return tensor
    for rows in (None, (indices, 1)):
      with self.subTest(rows=rows):
        ids.storage[0], indices.storage[0], given[:] = 0, 0, [None]
        model = stand_in.Module(a=stand_in.Module(change), b=stand_in.in_place(10))
        with observe.attach(model, ["a", "b"], run=run_name("phases"), device="cuda", tags={"id": ids}, rows=rows, policy=SMALL) as taps:
          reader = observe.read(run_name("phases"))
          for number in range(40):
            columns = 3 if number % 5 == 0 else 1  # a prompt, then four decode steps
            model(on_gpu([number + at % 2 for at in range(2 * columns)], (2, columns)))
            taps.flush()
          self.assertEqual(taps.self_check, {"a": "inline", "b": "late"})
        items, counts = everything(reader)
        # The first prompt and the first decode step are checked, and `a` is overwritten in both.
        self.assertEqual((counts["records"], counts["unwanted"]), (38, 2))
        for step in items[1:]:
          self.assertEqual(step.tags["id"].tolist(), [step.number % 2])
          columns = 3 if step.number % 5 == 0 else 1
          whole = [[step.number + (columns * row + column) % 2 for column in range(columns)] for row in range(2)]
          expected = whole if rows is None else [whole[step.number % 2]]
          self.assertEqual(step["a"].tolist(), expected)
          self.assertEqual(step["b"].tolist(), [[10 * x for x in row] for row in expected])

  def test_a_capture_without_a_checked_step_is_one_line(self):
    warnings.simplefilter("ignore")
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    with self.assertRaisesRegex(observe.Error, "^a: this step was not checked: run the same step once without a capture first$"):
      with observe.attach(model, ["a"], run=run_name("unchecked"), device="cuda", policy=SMALL):
        self.stub.stub_begin_capture(0)
        try:
          model(on_gpu([1]))
        finally:
          self.stub.stub_end_capture(2)

  def test_rows_whose_indices_and_count_are_on_the_gpu(self):
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    indices, count = on_gpu([0, 0, 0], dtype="int64"), on_gpu([0], dtype="int64")
    with observe.attach(model, ["a"], run=run_name("rows"), device="cuda", rows=(indices, count), policy=SMALL) as taps:
      reader = observe.read(run_name("rows"))
      for number in range(6):
        count.storage[0] = number % 4
        for i in range(3):
          indices.storage[i] = (number + i) % 5
        model(on_gpu([row * 10 + number for row in range(5)], (5, 1)))
      taps.flush()
    items, _ = everything(reader)
    self.assertEqual(items[0], observe.Gap(0, 0, 0, 1, 0))
    self.assertEqual([step["a"].tolist() for step in items[1:]],
                     [[[(number + i) % 5 * 10 + number] for i in range(number % 4)] for number in range(1, 6)])

  def test_rows_that_change_within_a_step_are_the_next_steps(self):
    indices, count, changed = on_gpu([0, 0, 0], dtype="int64"), on_gpu([0], dtype="int64"), []
    def change(tensor):
      count.storage[0] = len(changed) % 4
      for i in range(3):
        indices.storage[i] = (len(changed) + i) % 5
      changed.append(tensor)
      return tensor
    for tags in ({}, {"id": on_gpu([7], dtype="int64")}):
      with self.subTest(tags=tags):
        count.storage[0], changed[:] = 0, []
        model = stand_in.Module(a=stand_in.Module(change))
        with observe.attach(model, ["a"], run=run_name("changed"), device="cuda", rows=(indices, count), tags=tags,
                            policy=observe.Policy(host_mib=1, device_mib=1 / 8)) as taps:
          reader = observe.read(run_name("changed"))
          for number in range(400):
            model(on_gpu([row * 1000 + number for row in range(5) for _ in range(100)], (5, 100)))
            taps.flush()
        items, _ = everything(reader)
        self.assertEqual([step.number for step in items[1:]], list(range(1, 400)))
        for step in items[1:]:
          before = step.number - 1
          self.assertEqual(step["a"].tolist(), [[(before + i) % 5 * 1000 + step.number] * 100 for i in range(before % 4)])
          self.assertEqual({name: tag.tolist() for name, tag in step.tags.items()}, {name: [7] for name in tags})

  def blocked(self, name, full, steps, pause_s):
    """Steps of 2 KiB as fast as they go, into rings for 16 and 32 of them; a reader that pauses after each. Items, counts, seconds."""
    policy = observe.Policy(host_mib=1 / 16, device_mib=1 / 32, full=full, reader_timeout_ms=60_000)
    model, items = stand_in.Module(a=stand_in.Module(lambda tensor: tensor)), []
    with observe.attach(model, ["a"], run=run_name(name), device="cuda", policy=policy) as taps:
      reader = observe.read(run_name(name))

      def read():
        for item in reader:
          items.append(item)
          time.sleep(pause_s)
      thread = threading.Thread(target=read)
      begin_s = time.monotonic()
      if pause_s is not None:
        thread.start()
      for number in range(steps):
        model(on_gpu([number] * 512))
      taps.flush()
      took_s, counters = time.monotonic() - begin_s, taps.counters()
    if pause_s is not None:
      thread.join()
    reader.close()
    return items, counters, took_s

  def test_a_step_waits_for_a_reader_that_is_slow(self):
    items, counters, _ = self.blocked("block", "block:60000", 200, .001)
    self.assertEqual([(step.number, step["a"].tolist()[9]) for step in items], [(number, number) for number in range(200)])
    self.assertEqual((counters["records"], counters["dropped_device"] + counters["dropped_host"]), (200, 0))
    _, counters, _ = self.blocked("drop", "drop", 200, .001)
    self.assertGreater(counters["dropped_device"] + counters["dropped_host"], 0)

  def test_a_step_waits_no_longer_than_it_may(self):
    _, counters, took_s = self.blocked("bounded", "block:20", 80, None)
    self.assertEqual((counters["steps"], counters["records"] > 0), (80, True))
    self.assertGreater(counters["dropped_device"] + counters["dropped_host"], 0)
    self.assertLess(took_s, 30)

  def held(self, name, policy, steps, tags=None, overwrite=False):
    """Steps of 128 KiB, twice as much as a ring of 128 KiB takes. Items, counts, taps."""
    second = stand_in.in_place(10) if overwrite else stand_in.Module(lambda tensor: tensor)
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor), b=second)
    with observe.attach(model, ["a", "b"], run=run_name(name), device="cuda", tags=tags or {}, policy=policy) as taps:
      reader = observe.read(run_name(name))
      for number in range(steps):
        model(on_gpu([number + 1] * 16384))
        if tags:
          tags["id"].storage[0] += 1
        taps.flush()
      counters = taps.counters()
    items, counts = everything(reader)
    self.assertEqual({key: counts[key] for key in ("steps", "records", "dropped_device", "dropped_host", "unwanted")},
                     {key: counters[key] for key in ("steps", "records", "dropped_device", "dropped_host", "unwanted")})
    return [item for item in items if isinstance(item, observe.Step)], counters, taps

  LARGE = observe.Policy(host_mib=4, device_mib=1 / 8, held_mib=1)

  def test_a_step_that_is_too_large_for_the_ring_is_copied_from_where_it_is(self):
    steps, counters, taps = self.held("held", self.LARGE, 20)
    self.assertEqual(counters["records"], 20)
    for number, step in enumerate(steps):
      self.assertEqual((step.number, step["a"].tolist(), step["b"].tolist()), (number, [number + 1] * 16384, [number + 1] * 16384))
    self.assertEqual(len(taps._holding), 0)  # pylint: disable=protected-access

  def test_a_large_step_with_tags_and_a_layer_that_overwrites(self):
    steps, counters, taps = self.held("held-tags", self.LARGE, 10, {"id": on_gpu([7], dtype="int64")}, True)
    self.assertEqual(taps.self_check, {"a": "inline", "b": "late"})
    self.assertEqual((counters["records"], counters["unwanted"]), (9, 1))
    self.assertEqual([(step.number, step.tags["id"].tolist(), step["a"].tolist()[5], step["b"].tolist()[5]) for step in steps],
                     [(number, [7 + number], number + 1, 10 * number + 10) for number in range(1, 10)])

  def test_large_steps_that_nobody_wants_are_let_go(self):
    policy = observe.Policy(host_mib=4, device_mib=1 / 8, held_mib=3 / 16, every=3)
    steps, counters, _ = self.held("held-every", policy, 30)
    self.assertEqual(([step.number for step in steps], counters["unwanted"], counters["dropped_device"]), (list(range(0, 30, 3)), 20, 0))

  def test_a_large_step_beyond_held_mib_is_dropped_and_counted(self):
    steps, counters, _ = self.held("held-none", observe.Policy(host_mib=4, device_mib=1 / 8, held_mib=1 / 16), 5)
    self.assertEqual((steps, counters["dropped_device"], counters["records"]), ([], 5, 0))

  def test_a_large_step_is_not_captured(self):
    warnings.simplefilter("ignore")
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    with self.assertRaisesRegex(observe.Error, "does not fit twice into the device's ring cannot be captured"):
      with observe.attach(model, ["a"], run=run_name("held-graph"), device="cuda", policy=self.LARGE):
        x = on_gpu([1] * 32768)
        model(x)
        self.stub.stub_begin_capture(0)
        try:
          model(x)
        finally:
          self.stub.stub_end_capture(3)

  def test_unsupported_taps_are_refused(self):
    warnings.simplefilter("ignore")
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    for line, value, options in (
        ("a: it is on cpu, and these taps are of cuda:0", stand_in.Tensor([1]), {}),
        ("a: it is on cuda:1, and these taps are of cuda:0", stand_in.Tensor([1], device="cuda:1"), {}),
        ("tag x: array is no tensor on a GPU", on_gpu([1]), {"tags": {"x": array.array("q", [1])}})):
      with self.subTest(line=line), self.assertRaises(observe.Error) as raised:
        with observe.attach(model, ["a"], run=run_name("refused"), device="cuda", policy=SMALL, **options):
          model(value)
      self.assertEqual(str(raised.exception), line)
    with self.assertRaisesRegex(observe.Error, "^there is no GPU 3: this process sees 1$"):
      observe.attach(model, ["a"], run=run_name("refused"), device="cuda:3", policy=SMALL)

  def test_the_device_is_that_of_the_first_parameter(self):
    model = stand_in.Module(a=stand_in.Module(lambda tensor: tensor))
    model.parameters = lambda: iter([on_gpu([1])])
    with observe.attach(model, ["a"], run=run_name("device"), policy=SMALL) as taps:
      model(on_gpu([1]))
      taps.flush()
      self.assertEqual(taps.counters()["records"], 1)
