import types
import unittest

from deploy.drill.record import Record
from deploy.drill.runner import Patience, Runner, middle_of_iteration
from deploy.drill.story import Action, Step
from testing.lab.cluster import JobOptions
from testing.lab.lab import Counters, LabError, RailId, monotonic_ns
from testing.lab.traces import Row

MS = 1_000_000
QUICKLY = Patience(start_s=0.5, attach_s=0.3, stop_s=0.5, hang_s=0.6, standstill_s=0.15, aim_s=0.2)


class FakeFollower:
  """A rank's trace that grows by the clock until it is frozen: an iteration every 40 ms, a completion every 2 ms."""

  def __init__(self):
    self.rows: list[Row] = []
    self.frozen = False
    self._begin_ns = self._next_ns = monotonic_ns()

  def poll(self) -> list[Row]:
    fresh = []
    while self._next_ns <= monotonic_ns():
      step = (self._next_ns - self._begin_ns) // (2 * MS)
      if not self.frozen:
        fresh.append(Row("recv", self._next_ns, 0, "f", 1 << 20, 2 * MS))
        if step % 20 == 19:
          fresh.append(Row("iteration", self._next_ns, 0, "1", 1 << 24, 40 * MS))
      self._next_ns += 2 * MS
    self.rows += fresh
    return fresh


class FakeJob:
  def __init__(self):
    self.follower = FakeFollower()
    self.ranks = [types.SimpleNamespace(returncode=None, last_lines=lambda: "it said this")]
    self.killed = False
    self.log_text = ""

  def dead_rank(self):
    return 0 if self.ranks[0].returncode is not None else None

  def ask_to_stop(self):
    pass

  def wait(self, timeout_s):
    del timeout_s
    return True

  def kill(self):
    self.killed = True

  def report(self):
    return {"pass": True, "wrong_elements": 0, "late_writes": 0}

  def failures(self):
    return []

  def fresh_output(self):
    log_text, self.log_text = self.log_text, ""
    return log_text


class FakeLab:
  mode, nodes, rails, rate_gbps = "namespaces", 1, 2, 1.0

  def __init__(self):
    self.on_cut = lambda: None
    self.sent_bytes = 0

  def cut(self, rail):
    del rail
    self.on_cut()
    return monotonic_ns()

  def heal(self, rail):
    del rail
    return monotonic_ns()

  def blackhole(self, rail):
    return self.cut(rail)

  def unblackhole(self, rail):
    return self.heal(rail)

  def counters(self, node):
    del node
    self.sent_bytes += 1 << 24
    return {"rail0": Counters(self.sent_bytes, 0), "rail1": Counters(self.sent_bytes, 0)}


class FakeCluster:
  """A cluster that does as it is told by the test."""

  def __init__(self):
    self.lab, self.job = FakeLab(), FakeJob()
    self.has_daemons = True
    self.attached, self.replayed_bytes, self.crash = 1, 77, None
    self.binaries = types.SimpleNamespace(plugin=types.SimpleNamespace(name="libfake.so"))

  def start_job(self, name, options):
    del name, options
    return self.job

  def attached_processes(self, node):
    del node
    return self.attached

  def crash_report(self, node):
    del node
    return self.crash

  def living_daemons(self):
    return [0]

  def events(self, node):
    del node
    return [{"node": "n0", "kind": "failover", "monotonic_ns": str(monotonic_ns()), "replayed_bytes": str(self.replayed_bytes)}]


class FakeListener:
  def __getattr__(self, name):
    return lambda *arguments: None


STORY = [Step(Action.START_JOB), Step(Action.STAY, phase="healthy", seconds=0.3), Step(Action.CUT, rail=RailId(0, 1)),
         Step(Action.STAY, phase="degraded", seconds=0.3), Step(Action.STOP_JOB)]


class RunnerTest(unittest.TestCase):

  def setUp(self):
    self.cluster = FakeCluster()
    self.record = Record("namespaces", 1, 1.0, monotonic_ns())

  def run_story(self, steps=None):
    Runner(self.cluster, self.record, FakeListener(), JobOptions(), QUICKLY).run(steps or STORY)

  def test_a_story_that_goes_well(self):
    # The last event of the daemon is "now", after the phase: count what lies inside.
    self.cluster.events = lambda node: [{"node": "n0", "kind": "failover", "replayed_bytes": "77",
                                         "monotonic_ns": str(self.record.faults[0].time_ns + 1)}]
    self.run_story()
    self.assertEqual(self.record.problems, [])
    self.assertEqual([phase.name for phase in self.record.phases], ["healthy", "degraded"])
    self.assertEqual((self.record.faults[0].failovers, self.record.faults[0].replayed_bytes), (1, 77))
    self.assertEqual(len(self.record.reports), 1)
    self.assertEqual([mark.letter for mark in self.record.marks], ["A", "B", "C"])

  def test_a_hang_is_no_slowness_and_ends_the_job(self):
    self.cluster.lab.on_cut = lambda: setattr(self.cluster.job.follower, "frozen", True)
    self.run_story()
    self.assertRegex(self.record.problems[0], r"hangs since n0/rail1 was lost \(link-down\)")
    self.assertTrue(self.cluster.job.killed)
    self.assertGreater(self.record.faults[0].stall_ms, 300)

  def test_a_rank_that_dies_is_named_with_its_last_lines(self):
    self.cluster.lab.on_cut = lambda: setattr(self.cluster.job.ranks[0], "returncode", 5)
    self.run_story()
    self.assertRegex(self.record.problems[0], "died since n0/rail1 was lost.*rank 0 ended with 5: it said this")

  def test_a_daemon_that_dies_by_itself_is_named(self):
    self.cluster.lab.on_cut = lambda: setattr(self.cluster, "crash", "r2ccd of n0 ended by itself with -11: it said that")
    self.run_story()
    self.assertRegex(self.record.problems[0], "r2ccd of n0 ended by itself with -11")

  def test_a_job_that_never_moves(self):
    self.cluster.job.follower.frozen = True
    self.run_story()
    self.assertIn("moved nothing", self.record.problems[0])

  def test_a_plugin_without_daemon_is_noticed(self):
    self.cluster.attached = 0
    self.run_story()
    self.assertIn("libfake.so did not attach to r2ccd", self.record.problems[0])
    self.assertEqual(len(self.record.faults), 1)  # a real link can be cut all the same

  def test_on_loopback_it_ends_the_story(self):
    self.cluster.attached = 0
    self.cluster.lab.mode = "loopback"
    self.run_story()
    self.assertIn("did not attach to r2ccd", self.record.problems[0])
    self.assertEqual(self.record.faults, [])

  def test_a_fault_that_nobody_noticed(self):
    self.cluster.events = lambda node: []
    self.run_story()
    self.assertEqual(self.record.problems, ["n0/rail1: link-down, and no job reported a failover"])

  def test_without_daemons_the_jobs_log_counts(self):
    given_up = "R2CC: link n0/v1a -> n1/v1b given up (its link is down), 77 bytes replayed after 1234 us\n"
    self.cluster.has_daemons = False
    self.cluster.job.log_text = given_up  # before the fault: none of its own
    self.cluster.lab.on_cut = lambda: setattr(self.cluster.job, "log_text", given_up + "R2CC: more\n")
    self.run_story(STORY[:2] + [Step(Action.SILENCE, rail=RailId(0, 1)), *STORY[3:]])
    self.assertEqual(self.record.problems, [])
    fault = self.record.faults[0]
    self.assertEqual((fault.kind, fault.failovers, fault.replayed_bytes), ("silence", 1, 77))
    self.cluster.lab.on_cut = lambda: None
    self.run_story(STORY[:4])
    self.assertEqual(self.record.problems, ["n0/rail1: link-down, and no job reported a failover"])

  def test_a_rail_that_comes_back_is_waited_for(self):
    self.run_story(STORY[:2] + [Step(Action.REJOIN, seconds=5), STORY[-1]])
    self.assertEqual(self.record.problems, [])

  def test_a_rail_that_does_not_come_back_is_a_failure(self):
    self.cluster.lab.counters = lambda node: {"rail0": Counters(monotonic_ns(), 0), "rail1": Counters(7 << 20, 0)}
    self.run_story([STORY[0], Step(Action.REJOIN, seconds=0.3), STORY[-1]])
    self.assertEqual(self.record.problems, ["rail1 of n0 does not carry again 0.3 s after the repair"])

  def test_a_rail_without_traffic_is_noticed(self):
    self.cluster.lab.counters = lambda node: {"rail0": Counters(0, 0)}
    self.run_story(STORY[:2])
    self.assertEqual(self.record.problems, ["the plugin does not use rail0 of n0: nothing was sent there while healthy"])

  def test_a_failure_of_the_rig_is_no_verdict(self):
    def broken(rail):
      raise LabError("no such device")
    self.cluster.lab.cut = broken
    with self.assertRaises(LabError):
      self.run_story()
    self.assertTrue(self.cluster.job.killed)


class MiddleOfIteration(unittest.TestCase):

  def rows(self, *rows):
    return [Row(kind, time_ms * MS, 0, "f", 1, wait_ms * MS) for kind, time_ms, wait_ms in rows]

  def test_is_reckoned_from_its_first_completion(self):
    middle = middle_of_iteration(self.rows(("recv", 90, 5), ("iteration", 100, 100), ("recv", 150, 5), ("recv", 160, 5)))
    self.assertEqual((middle.begin_ns, middle.end_ns), (180 * MS, 220 * MS))

  def test_between_iterations_there_is_none(self):
    self.assertIsNone(middle_of_iteration(self.rows(("recv", 90, 5), ("iteration", 100, 100))))
    self.assertIsNone(middle_of_iteration(self.rows(("recv", 90, 5))))
