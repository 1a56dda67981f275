import unittest

from testing.lab import all_reduce_times


class AllReduceTimes(unittest.TestCase):

  def test_the_bound_of_an_all_reduce(self):
    mib_256, rail = 256 << 20, 8e9
    for members, seconds in (([4] * 4, 0.1007), ([3] + [4] * 3, 0.1074), ([2] + [4] * 3, 0.1342), ([1] + [4] * 3, 0.2684)):
      self.assertAlmostEqual(all_reduce_times.all_reduce_bound_s(mib_256, [rails * rail for rails in members]), seconds, 4)

  def test_only_right_data_has_a_time(self):
    report = {"pass": True, "rows": [{"size_bytes": 8, "time_us_median": 2e6}]}
    self.assertEqual(all_reduce_times.time_of(report), (8, 2.0))
    with self.assertRaisesRegex(ValueError, "r2cc-perf did not pass: 3 wrong"):
      all_reduce_times.time_of(report | {"pass": False, "error": "3 wrong"})


if __name__ == "__main__":
  unittest.main()
