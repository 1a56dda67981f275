import unittest

from tests.bench import compare_figures, perf_run
from tests.bench.compare_figures import Pair
from tests.bench.perf_run import Measured, RunFailed


def measured(busbw_gbps=8.0, cpu_s_per_gb=1.0, time_us=100.0, time_us_median=90.0):
  return Measured(16 << 20, time_us, time_us_median, busbw_gbps, cpu_s_per_gb)


class Large(unittest.TestCase):

  def test_ratio_is_of_pairs_and_not_of_medians(self):
    pairs = [Pair(measured(busbw), measured(plain)) for busbw, plain in ((9.0, 10.0), (2.0, 1.0), (6.0, 4.0))]
    result = compare_figures.large(4, 16 << 20, pairs, limit_gbps=12.0)
    self.assertEqual((result["r2cc_busbw_gbps"], result["plain_busbw_gbps"], result["busbw_ratio"]), (6.0, 4.0, 1.5))
    self.assertEqual((result["r2cc_of_iperf3"], result["plain_of_iperf3"]), (0.5, 0.333))
    self.assertIsNone(result["busbw_ratio_low"])

  def test_both_bandwidth_and_cpu_are_asked(self):
    fine = compare_figures.large(1, 1, [Pair(measured(8.0, 1.1), measured())] * 6, None)
    self.assertTrue(fine["as_asked"])
    self.assertNotIn("r2cc_of_iperf3", fine)
    self.assertFalse(compare_figures.large(1, 1, [Pair(measured(7.9), measured())] * 6, None)["as_asked"])
    self.assertFalse(compare_figures.large(1, 1, [Pair(measured(8.0, 1.2), measured())] * 6, None)["as_asked"])


class Small(unittest.TestCase):

  def test_the_upper_bound_is_asked(self):
    calm = [Pair(measured(time_us=100.0 + step / 10), measured()) for step in range(30)]
    result = compare_figures.small(1, 8, calm)
    self.assertEqual((result["time_ratio_low"], result["time_ratio_high"]), (1.009, 1.02))
    self.assertTrue(result["as_asked"])
    self.assertFalse(compare_figures.small(1, 8, calm[:18] + [Pair(measured(time_us=106), measured())] * 12)["as_asked"])

  def test_few_pairs_prove_nothing(self):
    self.assertFalse(compare_figures.small(1, 8, [Pair(measured(), measured())] * 5)["as_asked"])


class Text(unittest.TestCase):

  def test_sizes(self):
    self.assertEqual([compare_figures.size_text(size) for size in (8, 1000, 4096, 16 << 20, 1 << 30)], ["8", "1000", "4K", "16M", "1G"])

  def test_every_row_is_a_line(self):
    row = compare_figures.large(1, 16 << 20, [Pair(measured(), measured())] * 6, 10.0)
    self.assertRegex(compare_figures.large_table([row])[-1], r"1\s+16M\s+8.00\s+8.00 .*1.000 \(1.000..1.000\).*0.80\s+0.80  yes")
    row = compare_figures.small(4, 64, [Pair(measured(), measured())])
    self.assertRegex(compare_figures.small_table([row])[-1], r"4\s+64\s+100.0\s+100.0 .*too few pairs.*NO")


class Report(unittest.TestCase):

  def test_cpu_time_per_byte_sent(self):
    row = {"size_bytes": 500_000_000, "time_us": 2.0, "time_us_median": 1.0, "busbw_gbps": 3.0, "cpu_us": 4e6}
    self.assertEqual(perf_run.parse_report({"pass": True, "ranks": 2, "rows": [row]}), [Measured(500_000_000, 2.0, 1.0, 3.0, 4.0)])

  def test_a_run_that_did_not_pass_gives_no_figures(self):
    with self.assertRaisesRegex(RunFailed, "gone"):
      perf_run.parse_report({"pass": False, "error": "gone", "ranks": 2, "rows": []})
