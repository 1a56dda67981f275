import unittest

from testing.lab.stalls import Window
from testing.lab.traces import Row
from tests.chaos.judge import FaultDone, JobDone, Run, Timeline, Usage, growth

S = 1_000_000_000
MS = 1_000_000


def received(end_s: float, wait_ms: float = 1, size: int = 1000) -> Row:
  return Row("recv", round(end_s * S), 0, "f", size, round(wait_ms * MS))


class Timelines(unittest.TestCase):

  def test_the_part_of_a_wait_that_lies_in_a_window(self):
    timeline = Timeline()
    timeline.take([received(10, 3000), received(5, 100), received(6, 20)])
    self.assertEqual(timeline.longest_wait_ns(Window(8 * S, 20 * S)), 2 * S)
    self.assertEqual(timeline.longest_wait_ns(Window(7 * S, round(7.5 * S))), S // 2)
    self.assertEqual(timeline.longest_wait_ns(Window(4 * S, round(6.5 * S))), 100 * MS)
    self.assertEqual(timeline.longest_wait_ns(Window(round(5.5 * S), round(6.5 * S))), 0, "20 ms are no stall")

  def test_goodput_is_what_was_received(self):
    timeline = Timeline()
    timeline.take([received(second / 10, size=1_000_000) for second in range(100)])
    self.assertAlmostEqual(timeline.gbps(Window(2 * S, 4 * S)), 0.08)

  def test_collectives_of_collnet_are_their_iterations(self):
    timeline = Timeline()
    timeline.take([Row("iteration", 10 * S, 0, "", 1000, 2 * S)])
    self.assertEqual(timeline.longest_wait_ns(Window(0, 20 * S)), 2 * S)
    other = Timeline()
    other.take([Row("iteration", 10 * S, 0, "", 1000, 2 * S), received(10)])
    self.assertEqual(other.longest_wait_ns(Window(0, 20 * S)), 0)

  def test_a_fault_is_charged_with_the_longest_wait_of_any_job(self):
    one, other = Timeline(), Timeline()
    one.take([received(10, 200)])
    other.take([received(10.5, 700)])
    fault = FaultDone("cut", 0, 0, round(9.9 * S), round(9.95 * S))
    fault.measure([one, other], [])
    self.assertAlmostEqual(fault.stall_ms, 600)

  def test_a_stopped_rank_alone_is_to_blame(self):
    timeline = Timeline()
    timeline.take([received(10, 4000)])
    run = Run(1, faults=[FaultDone("cut", 5, 5, 5 * S, 9 * S), FaultDone("rank-stop n0 job 0", 6, 2, 6 * S, 8 * S),
                         FaultDone("rank-stop n1 job 0", 7, 2.5, 7 * S, round(9.5 * S))])
    run.measure([timeline])
    self.assertEqual([round(fault.stall_ms) for fault in run.faults], [500, 4000, 3000])
    self.assertEqual(run.counts()["stall_ms_worst"], 500)


def job(**changes) -> JobDone:
  return JobDone(**({"name": "job1", "kind": "ring", "begin_s": 0, "seconds": 10, "iterations": 5, "checked": True} | changes))


class Verdict(unittest.TestCase):

  def run_of(self, *jobs: JobDone, **changes) -> Run:
    return Run(1, jobs=list(jobs), faults=[FaultDone("cut n0/rail1", 1, 1, S, 2 * S)], **changes)

  def test_a_run_whose_jobs_end_right_passes(self):
    self.assertTrue(self.run_of(job()).passed())

  def test_a_run_that_shows_nothing_does_not(self):
    self.assertFalse(self.run_of().passed(), "no job")
    self.assertFalse(Run(1, jobs=[job()]).passed(), "no fault")
    self.assertFalse(Run(1, jobs=[job()], faults=[FaultDone("cut", 1, 1, S, S, note="no job runs there")]).passed())

  def test_violations(self):
    for each, words in ((job(wrong_elements=1), "1 wrong"), (job(late_writes=2), "2 late"), (job(hung="nothing"), "hung"),
                        (job(failures=["rank 0 ended with 1"]), "failed"), (job(checked=False), "not every element"),
                        (job(killed=True), "no rank says")):
      run = self.run_of(job(), each)
      self.assertFalse(run.passed(), words)
      self.assertIn(words, run.problems()[0])
    for changes in ({"growth": ["more"]}, {"left": ["a file"]}, {"daemons": ["ended"]}, {"rig": ["no tc"]}):
      self.assertFalse(self.run_of(job(), **changes).passed(), changes)

  def test_a_job_whose_rank_was_killed_has_to_fail_and_to_end(self):
    self.assertTrue(self.run_of(job(), job(killed=True, failures=["rank 1 ended with -9"])).passed())
    self.assertFalse(self.run_of(job(), job(killed=True, failures=["rank 1 ended with -9"], hung="others run")).passed())
    self.assertFalse(self.run_of(job(), job(killed=True, failures=["rank 1 ended with -9"], wrong_elements=1)).passed())

  def test_the_report_names_what_was_wrong(self):
    run = self.run_of(job(wrong_elements=3), usage={"r2ccd of n0": (Usage(1, 2, 3), Usage(4, 5, 6))})
    self.assertIn("3 wrong elements", run.markdown())
    self.assertIn("| 1.0 | 1.00 | cut n0/rail1 |", run.markdown())
    self.assertEqual(run.json_object()["wrong_elements"], 3)
    self.assertEqual(run.json_object()["jobs_failed"], 0)


class Growth(unittest.TestCase):

  def test_each_thing_has_its_bound(self):
    before = Usage(50, 10, 40_000)
    self.assertEqual(growth("p", before, Usage(55, 11, 60_000), 30_000), [])
    self.assertEqual(growth("p", before, Usage(67, 15, 70_001), 30_000),
                     ["p: descriptors grew from 50 to 67", "p: threads grew from 10 to 15", "p: rss_kb grew from 40000 to 70001"])
