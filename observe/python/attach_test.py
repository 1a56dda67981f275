"""attach() and read() over a stand-in for torch's modules."""

import array
import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings

from observe.python import stand_in
from r2cc import observe

SMALL = observe.Policy(host_mib=1 / 16)


def run_name(of):
  return f"{of}-{os.getpid()}"


def everything(reader):
  with reader:
    items = list(reader)
    return items, reader.counts()


setUpModule = stand_in.skip_if_sanitized


class AttachTest(unittest.TestCase):

  def setUp(self):
    warnings.simplefilter("error")

  def test_each_operator_side_and_index(self):
    model = stand_in.Module(a=stand_in.scaled(2), b=stand_in.Module(lambda x: (x, stand_in.Tensor([7], dtype="int64"))))
    with observe.attach(model, ["*", "a:in", "b[1]", "a:stats", "{a,b}:hash"], run=run_name("ops"), policy=SMALL) as taps:
      reader = observe.read(run_name("ops"))
      model(stand_in.Tensor([1, -2, float("nan")]))
      self.assertEqual(taps.counters()["records"], 1)
    (step,), counts = everything(reader)
    self.assertEqual(list(step.taps), ["a:in", "a", "a:stats", "a:hash", "b", "b[1]", "b:hash"])
    self.assertEqual(step["a:in"].tolist()[:2], [1, -2])
    self.assertEqual(step["a"].tolist()[:2], [2, -4])
    self.assertEqual(step["b[1]"].tolist(), [7])
    self.assertEqual((step["a:stats"].numbers()[0].least, step["a:stats"].numbers()[0].nans), (-4, 1))
    self.assertEqual(step["a:hash"], step["b:hash"])
    self.assertEqual(counts["steps"], 1)

  def test_a_layer_that_overwrites_its_input_is_found_and_right(self):
    model = stand_in.Module(a=stand_in.scaled(2), b=stand_in.in_place(10), c=stand_in.scaled(1))
    with observe.attach(model, ["*"], run=run_name("inline"), policy=SMALL) as taps:
      reader = observe.read(run_name("inline"))
      for number in range(1, 5):
        model(stand_in.Tensor([number, 5]))
      self.assertEqual(taps.self_check, {"a": "inline", "b": "late", "c": "late"})
    items, counts = everything(reader)
    self.assertEqual(items[0], observe.Gap(0, 0, 0, 1, 0))
    self.assertEqual([(step.number, step["a"].tolist(), step["b"].tolist()) for step in items[1:]],
                     [(number - 1, [2 * number, 10], [20 * number, 100]) for number in (2, 3, 4)])
    self.assertEqual((counts["records"], counts["unwanted"]), (3, 1))

  def test_tags_are_those_at_the_steps_begin(self):
    ids, positions = stand_in.Tensor([0, 0], dtype="int64"), [0]
    def forward(tensor):
      ids.storage[0] += 100  # the next step's, before this one ends
      return tensor
    model = stand_in.Module(a=stand_in.Module(forward))
    with observe.attach(model, ["a"], run=run_name("tags"), policy=SMALL, tags={"request": ids, "position": lambda: positions}):
      reader = observe.read(run_name("tags"))
      for number in range(3):
        positions = [number]
        model(stand_in.Tensor([1]))
    items, _ = everything(reader)
    self.assertEqual([item.tags["request"].tolist() for item in items], [[0, 0], [100, 0], [200, 0]])
    self.assertEqual([item.tags["position"].tolist() for item in items], [[0], [1], [2]])

  def test_rows_that_change_places_and_one_requests_sequence(self):
    model = stand_in.Module(a=stand_in.scaled(1))
    indices, requests, positions = array.array("i", [0] * 4), array.array("q", [0] * 4), array.array("q", [0] * 4)
    count = 0
    with observe.attach(model, ["a"], run=run_name("rows"), policy=SMALL, rows=(indices, lambda: count),
                        tags={"request": requests, "position": positions}):
      reader = observe.read(run_name("rows"))
      for number in range(6):
        order = [(number + i) % 3 for i in range(3)] if number != 4 else [0, 1]
        count = len(order)
        for place, request in enumerate(order):
          indices[place], requests[place], positions[place] = 2 - request, request, number
        tensor = stand_in.Tensor([0] * 8, (4, 2))
        for request in range(3):
          tensor.storage[2 * (2 - request)] = 10 * request + number
        model(tensor)
    with reader:
      rows, missing = reader.sequence("a", request=2)
    self.assertEqual(missing, [False, False, False, False, True, False])
    self.assertEqual([row and row.tolist()[0] for row in rows], [20, 21, 22, 23, None, 25])

  def test_groups_are_switched_within_two_steps(self):
    model = stand_in.Module(a=stand_in.scaled(1), b=stand_in.scaled(1))
    with observe.attach(model, ["a", "b"], run=run_name("groups"), policy=SMALL) as taps:
      reader = observe.read(run_name("groups"))
      for number in range(6):
        if number == 2:
          taps.disable("a")
        if number == 4:
          taps.enable()
        model(stand_in.Tensor([1]))
      with self.assertRaisesRegex(observe.Error, "^c is not among the points that were attached: a, b$"):
        taps.disable("c")
    items, _ = everything(reader)
    self.assertEqual(["".join(item.taps) for item in items], ["ab", "ab", "ab", "b", "b", "ab"])

  def test_shapes_that_change_are_layouts_of_their_own(self):
    model = stand_in.Module(a=stand_in.in_place(2), b=stand_in.in_place(2))
    with observe.attach(model, ["a", "b"], run=run_name("shapes"), policy=SMALL):
      reader = observe.read(run_name("shapes"))
      for size in (3, 1, 3, 1, 1, 3):
        model(stand_in.Tensor([1] * size))
    items, counts = everything(reader)
    steps = [item for item in items if isinstance(item, observe.Step)]
    self.assertEqual([(step.number, step["a"].tolist(), step["b"].tolist()) for step in steps],
                     [(number, [2] * size, [4] * size) for number, size in ((2, 3), (3, 1), (4, 1), (5, 3))])
    self.assertEqual(counts["unwanted"], 2)

  def test_a_step_that_raises_is_counted_and_raises_what_it_did(self):
    fails = False
    def forward(tensor):
      if fails:
        raise ValueError("the model's own")
      return tensor
    model = stand_in.Module(a=stand_in.scaled(1), b=stand_in.Module(forward))
    with observe.attach(model, ["*"], run=run_name("raises"), policy=SMALL):
      reader = observe.read(run_name("raises"))
      for number in range(4):
        fails = number == 1
        if fails:
          with self.assertRaisesRegex(ValueError, "the model's own"):
            model(stand_in.Tensor([number]))
        else:
          model(stand_in.Tensor([number]))
    items, counts = everything(reader)
    self.assertEqual([step["a"].tolist() for step in items if isinstance(step, observe.Step)], [[0], [2], [3]])
    self.assertEqual((counts["steps"], counts["records"]), (4, 3))

  def test_an_error_is_one_line_and_the_model_goes_on(self):
    warnings.simplefilter("always")
    cases = {
        "never fired by the end of the first step: nothing.here": (["a", "nothing.here"], stand_in.Tensor([1])),
        'a: it is on cuda:0, and these taps are of host memory: attach with device="cuda:0"': (
            ["a"], stand_in.Tensor([1], device="cuda:0")),
        "a[3]: there is no tensor of that number": (["a[3]"], stand_in.Tensor([1])),
        "a: int is no tensor": (["a"], 5),
    }
    for line, (points, value) in cases.items():
      model = stand_in.Module(a=stand_in.Module(lambda x: x))
      with self.subTest(line=line), self.assertRaises(observe.Error) as raised, warnings.catch_warnings(record=True) as warned:
        with observe.attach(model, points, run=run_name("wrong"), policy=SMALL):
          for _ in range(3):
            self.assertIs(model(value), value)
      self.assertEqual(str(raised.exception), line)
      self.assertEqual([str(one.message) for one in warned], ["r2cc.observe: " + line])

  def test_bad_arguments_are_refused_at_once(self):
    model = stand_in.Module(a=stand_in.scaled(1))
    for line, points, options in (
        ("point 'a:stats:in': GLOB[:in|:out][[INDEX]][:stats|:hash]", ["a:stats:in"], {}),
        ("1 to 64 points, each of them once", ["a", "a"], {}),
        ("full='wait': drop or block:MILLISECONDS; a wait without a bound does not exist", ["a"], {"policy": observe.Policy(full="wait")}),
        ("no step would ever be wanted", ["a"], {"policy": observe.Policy(decode=False, prefill=False)}),
        ('device tpu: it is "host", "cuda" or "cuda:NUMBER"', ["a"], {"device": "tpu"}),
        ("a run's name has 1 to 64 of letters, digits, '.', '_' and '-'", ["a"], {"run": "a/b"}),
        ("the host's ring would have 1024 bytes; it has 4096 to 1099511627776", ["a"], {"policy": observe.Policy(host_mib=1 / 1024)})):
      with self.subTest(line=line), self.assertRaises(observe.Error) as raised:
        observe.attach(model, points, **{"run": run_name("refused"), **options})
      self.assertEqual(str(raised.exception), line)
    with observe.attach(model, ["a"], run=run_name("twice"), policy=SMALL):
      with self.assertRaisesRegex(observe.Error, f"has a producer of rank 0 already, process {os.getpid()}$"):
        observe.attach(model, ["a"], run=run_name("twice"), policy=SMALL)
      observe.attach(model, ["a"], run=run_name("twice"), rank=1, policy=SMALL).close()
    with self.assertRaisesRegex(observe.Error, "no process of this user has it"):
      observe.read(run_name("nobody"))

  def test_a_step_larger_than_the_ring_names_a_remedy(self):
    warnings.simplefilter("ignore")
    model = stand_in.Module(a=stand_in.scaled(1))
    with self.assertRaisesRegex(observe.Error, "must fit twice into the host's ring of 8192: raise host_mib"):
      with observe.attach(model, ["a"], run=run_name("large"), policy=observe.Policy(host_mib=8 / 1024)):
        model(stand_in.Tensor([0] * 2000))

  def test_after_close_nothing_is_written_and_the_model_goes_on(self):
    model = stand_in.Module(a=stand_in.scaled(3))
    taps = observe.attach(model, ["a"], run=run_name("closed"), policy=SMALL)
    reader = observe.read(run_name("closed"))
    model(stand_in.Tensor([1]))
    taps.close()
    taps.close()
    self.assertEqual(list(model(stand_in.Tensor([2])).storage), [6])
    items, counts = everything(reader)
    self.assertEqual((len(items), counts["steps"]), (1, 1))

  def test_a_forked_child_does_nothing(self):
    model = stand_in.Module(a=stand_in.scaled(1))
    with observe.attach(model, ["a"], run=run_name("fork"), policy=SMALL) as taps:
      model(stand_in.Tensor([1]))
      child = os.fork()
      if child == 0:
        try:
          model(stand_in.Tensor([2]))
          taps.counters()
        except observe.Error as error:
          os._exit(0 if "is a child of it" in str(error) else 2)  # pylint: disable=protected-access
        os._exit(1)  # pylint: disable=protected-access
      self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
      model(stand_in.Tensor([3]))
      self.assertEqual(taps.counters()["records"], 2)

  def test_a_callback_gets_every_step(self):
    model = stand_in.Module(a=stand_in.scaled(1))
    got, names = [], set()
    def callback(item):
      got.append(item.number)
      names.add(threading.current_thread().name)
    with observe.attach(model, ["a"], run=run_name("callback"), policy=SMALL, callback=callback):
      for number in range(20):
        model(stand_in.Tensor([number]))
    self.assertEqual(got, list(range(20)))
    self.assertEqual(names, {"r2cc-taps-callback"})

  def test_producer_and_reader_agree_by_cause_in_every_case(self):
    model = stand_in.Module(a=stand_in.scaled(1))
    policy = observe.Policy(host_mib=8 / 1024, every=2, reader_timeout_ms=20)
    with observe.attach(model, ["a"], run=run_name("agree"), policy=policy) as taps:
      reader = observe.read(run_name("agree"))
      iterator = iter(reader)
      number = 0
      # Until it was cut off: the first step that it holds up is dropped in any case.
      while number < 100 or taps.counters()["cut_off"] == 0:
        model(stand_in.Tensor([number] * 100))
        if number % 7 == 0 and number < 100:
          next(iterator)
        number += 1
      for later in range(number, number + 100):
        model(stand_in.Tensor([later] * 100))
      produced = taps.counters()
    for item in iterator:
      if isinstance(item, observe.Step):
        self.assertEqual(item["a"].tolist(), [item.number] * 100)
    read = reader.counts()
    reader.close()
    self.assertGreater(produced["cut_off"], 0)
    self.assertGreater(produced["dropped_host"], 0)
    self.assertGreater(read["missed"], 0)
    for cause in ("steps", "dropped_device", "dropped_host", "unwanted"):
      self.assertEqual(read[cause], produced[cause], cause)
    self.assertEqual(read["records"] + read["missed"], produced["records"])

  def test_plan_states_its_cost(self):
    model = stand_in.Module(a=stand_in.scaled(2), b=stand_in.in_place(2), c=stand_in.in_place(1.5))
    plan = observe.plan(model, ["a", "b:stats", "c:hash"], stand_in.Tensor([1] * 6, (2, 3)))
    self.assertEqual([(one.name, one.bytes_a_step, one.placement) for one in plan],
                     [("a", 24, "inline"), ("b:stats", 24, "inline"), ("c:hash", 8, "late")])
    self.assertEqual(plan.bytes_a_step, 80)
    self.assertIn("80 bytes a step", str(plan))

  def test_a_killed_jobs_reader_ends_with_what_was_whole(self):
    program = ("from observe.python import stand_in\nfrom r2cc import observe\nimport sys\n"
               "model = stand_in.Module(a=stand_in.scaled(1))\n"
               f"taps = observe.attach(model, ['a'], run={run_name('killed')!r}, policy=observe.Policy(host_mib=1))\n"
               "number = 0\n"
               "while True:\n  model(stand_in.Tensor([number] * 50)); number += 1\n  if number == 200: print('x', flush=True)\n")
    job = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    try:
      self.assertEqual(job.stdout.read(1), b"x")
      reader = observe.read(run_name("killed"))
      job.send_signal(signal.SIGKILL)
      job.wait()
      items, counts = everything(reader)
    finally:
      job.kill()
      job.wait()
      job.stdout.close()
    steps = [item for item in items if isinstance(item, observe.Step)]
    self.assertGreaterEqual(len(steps), 100)
    for step in steps:
      self.assertEqual(step["a"].tolist(), [step.number] * 50)
    self.assertEqual([step.number for step in steps], list(range(steps[0].number, steps[-1].number + 1)))
    self.assertEqual(counts["records"], len(steps))
