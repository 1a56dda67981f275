import unittest

from deploy.drill import story
from deploy.drill import comparison
from deploy.drill.comparison import Comparison
from deploy.drill.record import Fault, Phase, Record, count_failovers, count_logged_failovers, judge, measure, summary
from testing.lab.lab import RailId
from testing.lab.stalls import Window
from testing.lab.traces import Row

S = 1_000_000_000
GOOD = {"pass": True, "wrong_elements": 0, "late_writes": 0}


def steady_rows(begin_s: int, end_s: int) -> list[Row]:
  """Two ranks that receive 1 MB and end an iteration every 10 ms."""
  rows = []
  for time_ns in range(begin_s * S, end_s * S, S // 100):
    for rank in (0, 1):
      rows.append(Row("recv", time_ns + S // 100, rank, "f", 1_000_000, S // 100))
      rows.append(Row("iteration", time_ns + S // 100, rank, "1", 1_000_000, S // 100))
  return rows


def passed_record() -> Record:
  record = Record("namespaces", nodes=2, rate_gbps=2.0, begin_ns=0, end_ns=20 * S)
  record.traces = [steady_rows(1, 15)]
  record.phases = [Phase(story.HEALTHY, 0, Window(1 * S, 5 * S)), Phase(story.DEGRADED, 0, Window(6 * S, 10 * S))]
  record.reports = [dict(GOOD)]
  return record


class Judge(unittest.TestCase):

  def test_passes_what_is_right(self):
    self.assertEqual(judge(passed_record(), jobs_expected=1), [])

  def test_fails_each_thing_that_is_not(self):
    for key, value in (("wrong_elements", 3), ("late_writes", 1), ("pass", False)):
      record = passed_record()
      record.reports[0][key] = value
      self.assertEqual(len(judge(record, 1)), 1, key)
      del record.reports[0][key]
      self.assertEqual(len(judge(record, 1)), 1, key)

  def test_rails_of_a_guest_go_by_rdma(self):
    for devices, reasons in (("v0a (RDMA, rxe0a), v1a (RDMA, rxe1a)", 0), ("v0a (RDMA, rxe0a), v1a", 1), (None, 1)):
      record = passed_record()
      record.mode = "verbs"
      record.reports[0] |= {"channels": 2, "devices": devices}
      self.assertEqual(len(judge(record, 1)), reasons, devices)

  def test_fails_a_phase_without_progress(self):
    record = passed_record()
    record.phases.append(Phase("stuck", 0, Window(16 * S, 18 * S)))
    self.assertEqual(judge(record, 1), ["no progress in phase 'stuck'"])

  def test_fails_a_job_that_left_no_report(self):
    self.assertEqual(judge(passed_record(), jobs_expected=2), ["1 of 2 jobs ran to their end"])

  def test_the_first_problem_is_the_reason(self):
    record = passed_record()
    record.problems = ["it burnt"]
    record.reports = []
    reasons = judge(record, 1)
    self.assertEqual(summary(record, reasons, 1)["reason"], "it burnt")
    self.assertIsNone(summary(record, reasons, 1)["wrong_elements"])


class Figures(unittest.TestCase):

  def test_a_fault_is_measured(self):
    record = passed_record()
    # Silence for half a second after 8 s.
    record.traces[0] = [row for row in record.traces[0] if not 8 * S < row.time_ns <= 8 * S + S // 2]
    record.traces[0].append(Row("recv", 8 * S + S // 2, 0, "f", 1, S // 2))
    fault = Fault("link-down", RailId(0, 1), 0, 8 * S, "degraded")
    measure(fault, record.traces[0], Window(1 * S, 5 * S), 10 * S)
    self.assertAlmostEqual(fault.stall_ms, 490.0)
    self.assertAlmostEqual(fault.standstill_ms, 490.0)
    self.assertAlmostEqual(fault.before_gbps, 0.8, places=1)
    self.assertAlmostEqual(fault.during_gbps, 0.0, places=1)
    self.assertAlmostEqual(fault.after_gbps, 0.8, places=1)

  def test_failovers_are_those_of_the_fault(self):
    fault = Fault("link-down", RailId(0, 1), 0, 8 * S, "degraded")
    # Protobuf's JSON has 64-bit numbers as strings.
    events = [{"kind": "failover", "monotonic_ns": str(9 * S), "replayed_bytes": "5"},
              {"kind": "failover", "monotonic_ns": str(7 * S), "replayed_bytes": "7"},
              {"kind": "failover", "monotonic_ns": 9 * S, "replayed_bytes": 6}, {"kind": "nic-state", "monotonic_ns": str(9 * S)}]
    count_failovers(fault, events, 10 * S)
    self.assertEqual((fault.failovers, fault.replayed_bytes), (2, 11))

  def test_failovers_are_reported_by_the_plugin_too(self):
    fault = Fault("silence", RailId(0, 1), 0, 8 * S, "degraded")
    count_logged_failovers(fault, "r2cc-perf[0] INFO R2CC: link n0/v1a -> n1/v1b given up (port event), 131072 bytes replayed after 5 us\n"
                           "R2CC: link n1/v1b -> n0/v1a given up (the other end does not answer on it), 5 bytes replayed after 7 us\n"
                           "R2CC: rail v1a is up\n")
    self.assertEqual((fault.failovers, fault.replayed_bytes), (2, 131077))
    count_logged_failovers(fault, "nothing of the kind")
    self.assertEqual((fault.failovers, fault.replayed_bytes), (0, 0))

  def test_the_summary_has_them(self):
    record = passed_record()
    record.faults = [Fault("link-down", RailId(0, 1), 0, 8 * S + S // 200, "degraded", 2, 11, 12.3456, 3.0)]
    result = summary(record, [], 1)
    self.assertTrue(result["pass"])
    self.assertEqual(result["wrong_elements"], 0)
    self.assertEqual(result["busbw_healthy_gbps"], 0.8)
    self.assertIsNone(result["busbw_restored_gbps"])
    self.assertIsNone(result["half_lost"])
    record.comparison = Comparison(2, 4, {comparison.BALANCE: 0.5, comparison.DEGRADED: 0.375}, 0.25)
    self.assertEqual(summary(record, [], 1)["half_lost"], {"rate": "100mbit", "size": "8M", "bound_ms": 250.0, "balance_ms": 500.0,
                                                           "degraded_all_reduce_ms": 375.0})
    self.assertEqual(result["faults"], [{"kind": "link-down", "rail": "n0/rail1", "stall_ms": 12.35, "standstill_ms": 3.0,
                                         "replayed_bytes": 11, "failovers": 2, "mid_iteration": True}])
