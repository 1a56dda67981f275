import types
import unittest

from deploy.drill import comparison
from testing.lab.lab import LabError, RailId


class FakeLab:
  nodes, rails = 4, 4

  def __init__(self):
    self.down, self.rates = set(), {}

  def cut(self, rail):
    self.down.add(rail)

  def heal(self, rail):
    self.down.remove(rail)

  def reshape(self, rail, rate):
    self.rates[rail] = rate


class FakeCluster:
  def __init__(self):
    self.lab = FakeLab()
    self.wrong = False
    self.ends = True
    self.down_in_jobs = []

  def start_job(self, name, options):
    self.down_in_jobs.append((name, set(self.lab.down)))
    seconds = 0.25 if "--collnet" in options.flags else 0.5
    report = {"pass": not self.wrong, "error": "3 wrong", "rows": [{"size_bytes": 8 << 20, "time_us_median": 1e6 * seconds}]}
    rank = types.SimpleNamespace(last_lines=lambda: "it said this")
    return types.SimpleNamespace(wait=lambda timeout_s: self.ends, failures=lambda: [], report=lambda: report, kill=lambda: None,
                                 ranks=[rank])


class ComparisonTest(unittest.TestCase):

  def test_both_ways_run_with_half_of_the_rails_lost(self):
    cluster = FakeCluster()
    found = comparison.compare(cluster, 3, lambda line: None)
    self.assertEqual(found.seconds, {comparison.BALANCE: 0.5, comparison.DEGRADED: 0.25})
    self.assertEqual((found.lost, found.rails), (2, 4))
    # 8 MiB: the first node's 200 Mbit/s carry all of it.
    self.assertAlmostEqual(found.bound_s, 8 * (8 << 20) / 200e6)
    self.assertEqual([down for _, down in cluster.down_in_jobs], [{RailId(0, 0), RailId(0, 1)}] * 2)
    self.assertEqual(len({name for name, _ in cluster.down_in_jobs}), 2)
    self.assertEqual(cluster.lab.down, set())
    self.assertEqual(len(cluster.lab.rates), 16)

  def test_wrong_data_and_hangs_are_named(self):
    cluster = FakeCluster()
    cluster.wrong = True
    with self.assertRaisesRegex(LabError, "way0: r2cc-perf did not pass: 3 wrong"):
      comparison.compare(cluster, 3, lambda line: None)
    self.assertEqual(cluster.lab.down, set())
    cluster.ends = False
    with self.assertRaisesRegex(LabError, "not done after 60 s: it said this"):
      comparison.compare(cluster, 3, lambda line: None)


if __name__ == "__main__":
  unittest.main()
