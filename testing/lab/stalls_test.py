import unittest

from testing.lab import stalls
from testing.lab.stalls import Window
from testing.lab.traces import Row

MS = 1_000_000


def completion(time_ms: float, wait_ms: float, kind: str = "recv", rank: int = 0, flow: str = "f", size_bytes: int = 1 << 20) -> Row:
  return Row(kind, int(time_ms * MS), rank, flow, size_bytes, int(wait_ms * MS))


def window(begin_ms: float, end_ms: float) -> Window:
  return Window(int(begin_ms * MS), int(end_ms * MS))


class LongestWait(unittest.TestCase):

  def test_is_the_longest_of_all_flows(self):
    rows = [completion(10, 4), completion(12, 7, kind="send", rank=3), completion(20, 5)]
    self.assertEqual(stalls.longest_wait_ns(rows, window(0, 100)), 7 * MS)

  def test_counts_only_the_part_inside_the_window(self):
    rows = [completion(30, 25), completion(210, 60)]
    self.assertEqual(stalls.longest_wait_ns(rows, window(20, 200)), 50 * MS)

  def test_counts_a_wait_that_spans_the_window(self):
    self.assertEqual(stalls.longest_wait_ns([completion(500, 500)], window(100, 200)), 100 * MS)

  def test_counts_a_wait_that_no_completion_ended(self):
    self.assertEqual(stalls.longest_wait_ns([completion(150, 120, kind="open", size_bytes=0)], window(100, 200)), 50 * MS)

  def test_leaves_out_iterations_and_other_times(self):
    rows = [completion(90, 80, kind="iteration"), completion(300, 50)]
    self.assertEqual(stalls.longest_wait_ns(rows, window(0, 100)), 0)


  def test_leaves_out_what_the_machine_stood_still(self):
    rows = [completion(30, 25), completion(80, 40)]
    self.assertEqual(stalls.longest_wait_ns(rows, window(0, 100), [window(45, 65), window(75, 90)]), 25 * MS)
    self.assertEqual(stalls.longest_wait_ns(rows, window(0, 100), [window(0, 20)]), 40 * MS)


class Waits(unittest.TestCase):

  def test_flows_that_wait_together_are_one_wait(self):
    rows = [completion(50, 30), completion(60, 25, flow="g"), completion(100, 39), completion(130, 10)]
    self.assertEqual(stalls.waits(rows, window(0, 200), 20 * MS), [window(20, 60), window(61, 100)])

  def test_are_cut_at_the_windows_ends(self):
    rows = [completion(50, 40), completion(250, 60), completion(90, 30, kind="iteration")]
    self.assertEqual(stalls.waits(rows, window(20, 200), 5 * MS), [window(20, 50), window(190, 200)])


class LongestStandstill(unittest.TestCase):

  def test_ends_with_any_completion(self):
    rows = [completion(40, 35), completion(50, 48, flow="g"), completion(80, 75, rank=1)]
    self.assertEqual(stalls.longest_standstill_ns(rows, window(0, 100)), 38 * MS)

  def test_needs_a_request_outstanding(self):
    rows = [completion(10, 5), completion(70, 15, flow="g"), completion(75, 20)]
    self.assertEqual(stalls.longest_standstill_ns(rows, window(0, 100)), 15 * MS)

  def test_is_cut_at_the_windows_ends(self):
    self.assertEqual(stalls.longest_standstill_ns([completion(500, 500)], window(100, 200)), 100 * MS)
    self.assertEqual(stalls.longest_standstill_ns([completion(150, 120)], window(100, 200)), 50 * MS)
    self.assertEqual(stalls.longest_standstill_ns([completion(50, 40), completion(400, 100)], window(100, 200)), 0)


class Stall(unittest.TestCase):

  def test_is_the_excess_over_the_same_statistic_when_healthy(self):
    rows = [completion(3500, 8), completion(5040, 40)]
    self.assertEqual(stalls.stall_ms(rows, 5000 * MS, window(0, 4000)), 32.0)

  def test_begins_with_the_fault_and_not_with_the_wait(self):
    self.assertEqual(stalls.stall_ms([completion(5040, 90)], 5000 * MS, window(0, 4000)), 40.0)

  def test_compares_with_a_window_of_the_same_length(self):
    # The wait at 500 ms is more than 2 s before the end of the healthy phase.
    rows = [completion(500, 300), completion(3000, 10), completion(5040, 40)]
    self.assertEqual(stalls.stall_ms(rows, 5000 * MS, window(0, 4000)), 30.0)

  def test_is_never_negative(self):
    self.assertEqual(stalls.stall_ms([completion(3000, 50), completion(5010, 5)], 5000 * MS, window(0, 4000)), 0.0)

  def test_looks_no_further_than_two_seconds(self):
    self.assertEqual(stalls.stall_ms([completion(9000, 3990)], 5000 * MS, window(0, 4000)), 1990.0)

  def test_sees_a_hang_before_its_trace_does(self):
    rows = [completion(4000, 5), completion(5100, 5)]
    self.assertEqual(stalls.stall_ms(rows, 5000 * MS, window(2000, 3900), now_ns=6600 * MS), 1500.0)
    self.assertEqual(stalls.stall_ms(rows, 5000 * MS, window(2000, 3900), now_ns=20000 * MS), 1900.0)

  def test_ranks_that_went_on_after_the_window_did_not_hang(self):
    rows = [completion(5000 + step, 10) for step in range(10, 4000, 10)]
    self.assertEqual(stalls.stall_ms(rows, 5000 * MS, window(2000, 3900), now_ns=9000 * MS), 10.0)


class Bandwidth(unittest.TestCase):

  def iteration(self, end_ms: float, duration_ms: float, rank: int = 0) -> Row:
    return completion(end_ms, duration_ms, kind="iteration", rank=rank, size_bytes=1_000_000)

  def test_is_the_median_of_whole_iterations(self):
    rows = [self.iteration(110, 20), self.iteration(150, 10), self.iteration(170, 10), self.iteration(190, 40), self.iteration(205, 10)]
    # 1 MB in 10 ms is 0.8 Gb/s, times 2 * 3 / 4 on 4 ranks.
    self.assertAlmostEqual(stalls.bus_bandwidth_gbps(rows, window(100, 200), ranks=4), 1.2)

  def test_without_a_whole_iteration_it_is_unknown(self):
    self.assertIsNone(stalls.bus_bandwidth_gbps([self.iteration(250, 200)], window(100, 200), ranks=4))

  def test_knows_whether_a_moment_is_in_mid_iteration(self):
    rows = [self.iteration(100, 40), self.iteration(200, 40)]
    self.assertTrue(stalls.mid_iteration(rows, 80 * MS))
    self.assertFalse(stalls.mid_iteration(rows, 130 * MS))


class Goodput(unittest.TestCase):

  def test_counts_the_time_inside_of_collectives_only(self):
    rows = [completion(10, 1, size_bytes=500_000), completion(20, 1, size_bytes=500_000), completion(20, 1, kind="send"),
            completion(50, 50, kind="iteration"), completion(101, 1)]
    self.assertAlmostEqual(stalls.goodput_gbps(rows, window(0, 100)), 0.16)

  def test_is_that_of_one_rank(self):
    rows = [completion(20, 1, size_bytes=500_000, rank=rank) for rank in (0, 1)]
    rows += [completion(100, 100, kind="iteration", rank=rank) for rank in (0, 1)]
    self.assertAlmostEqual(stalls.goodput_gbps(rows, window(0, 100)), 0.04)

  def test_a_collective_that_does_not_end_counts(self):
    rows = [completion(50, 50, kind="iteration"), completion(60, 5, size_bytes=125_000)]
    self.assertAlmostEqual(stalls.goodput_gbps(rows, window(50, 160)), 0.01)

  def test_bins_add_up(self):
    rows = [completion(time_ms, 1, size_bytes=125_000) for time_ms in (0, 10, 60, 99.9)] + [completion(100, 100, kind="iteration")]
    self.assertEqual(stalls.goodput_bins_gbps(rows, window(0, 100), bins=2), [0.04, 0.04])

  def test_nothing_is_zero(self):
    self.assertEqual(stalls.goodput_gbps([], window(0, 10)), 0.0)
    self.assertEqual(stalls.goodput_gbps([completion(10, 1)], window(10, 10)), 0.0)
    self.assertEqual(stalls.goodput_bins_gbps([completion(5, 1)], window(100, 200), bins=2), [0.0, 0.0])
