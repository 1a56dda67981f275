import unittest

from tests.gpu import figures
from tests.gpu.figures import Row

MS = 1_000_000


def steady(count: int, cycle_ms: int = 30, took_ms: int = 20, begin_ms: int = 0, first: int = 0) -> list[Row]:
  begins_ms = [begin_ms + number * cycle_ms for number in range(count)]
  return [Row(first + number, begin * MS, (begin + took_ms) * MS) for number, begin in enumerate(begins_ms)]


class LossCurves(unittest.TestCase):

  def test_the_mean_does_not_depend_on_the_order_of_ranks(self):
    ranks = [[0.1.hex(), 1.0.hex()], [0.2.hex(), 2.0.hex()], [1e16.hex(), 3.0.hex()]]
    self.assertEqual(figures.mean_losses(ranks), figures.mean_losses(ranks[::-1]))
    self.assertEqual(figures.mean_losses(ranks)[1], 2.0)

  def test_a_curve_is_within_the_noise_of_two_others_or_is_not(self):
    undisturbed = [[3.0, 2.0], [3.0, 2.001]]
    self.assertTrue(figures.within_noise([3.0, 1.9995], undisturbed, 1.5)[2])
    self.assertTrue(figures.within_noise([3.0, 2.0], undisturbed, 1.5)[2])
    nearest, noise, within = figures.within_noise([3.0, 2.01], undisturbed, 1.5)
    self.assertFalse(within)
    self.assertAlmostEqual(nearest / noise, 9)
    with self.assertRaises(ValueError):
      figures.distance([1.0], [1.0, 2.0])


class Rows(unittest.TestCase):

  def test_ranks_are_merged_to_the_slowest(self):
    merged = figures.merge([{0: (10, 20), 1: (30, 40)}, {0: (12, 19), 1: (28, 45), 2: (50, 60)}])
    self.assertEqual(merged, [Row(0, 12, 20), Row(1, 30, 45)])
    self.assertEqual(figures.merge([]), [])

  def test_a_stall_outside_the_collective_is_seen_too(self):
    rows = steady(10) + steady(10, begin_ms=10 * 30 + 100, first=10)
    usual_ms = figures.median_cycle_ms(rows)
    self.assertEqual(usual_ms, 30)
    self.assertEqual(figures.stall_ms(rows, 305 * MS, usual_ms), 100)
    self.assertEqual(figures.stall_ms(rows, 0, usual_ms), 100)
    self.assertEqual(figures.stall_ms(rows, 500 * MS, usual_ms), 0)
    self.assertIsNone(figures.stall_ms(rows, 10_000 * MS, usual_ms))

  def test_a_missing_iteration_makes_no_cycle(self):
    self.assertEqual(figures.cycles_ns([Row(0, 0, 1), Row(2, 5, 6)]), [])

  def test_within_takes_whole_rows(self):
    rows = steady(4)
    self.assertEqual(figures.within(rows, 1 * MS, 85 * MS), rows[1:3])
    self.assertAlmostEqual(figures.mean_s(rows), 0.02)
    self.assertEqual(figures.median_ms(rows), 20)
    self.assertIsNone(figures.mean_s([]))


class Bandwidth(unittest.TestCase):

  def test_as_nccl_tests_counts(self):
    self.assertAlmostEqual(figures.busbw_gbps("all_reduce", 64 << 20, 4, 0.033554432), 24.0)
    self.assertAlmostEqual(figures.busbw_gbps("all_gather", 1000, 2, 8e-6 / 2), 1.0)
    self.assertAlmostEqual(figures.busbw_gbps("sendrecv", 1000, 2, 8e-6), 1.0)


class Statistics(unittest.TestCase):

  def test_ratio_has_bounds_only_with_enough_pairs(self):
    self.assertIsNone(figures.ratio_fields([1.0] * 5, [1.0] * 5)["low"])
    result = figures.ratio_fields([2.0] * 30, [1.0] * 30)
    self.assertEqual((result["ratio"], result["low"], result["high"], result["pairs"]), (2.0, 2.0, 2.0, 30))

  def test_spread(self):
    self.assertEqual(figures.spread([3.0, 1.0, 2.0]), {"p50": 2.0, "max": 3.0, "count": 3})
    self.assertEqual(figures.spread([]), {"p50": None, "max": None, "count": 0})

  def test_digest_differs_in_one_bit(self):
    losses = [float(number).hex() for number in range(10)]
    self.assertEqual(figures.digest(losses), figures.digest(list(losses)))
    self.assertNotEqual(figures.digest(losses), figures.digest(losses[:9] + [(9.0000000001).hex()]))


class Training(unittest.TestCase):

  def test_steps_that_are_hit_belong_to_no_phase(self):
    self.assertEqual(figures.phases([20, 40], 100), [(0, 20), (21, 40), (41, 100)])
    self.assertEqual(figures.phases([], 10), [(0, 10)])
    self.assertEqual(figures.phases([0], 2), [(1, 2)])
    self.assertEqual(figures.fault_steps(100), [20, 40, 60, 80])

  def test_shares(self):
    self.assertAlmostEqual(figures.exposed_share(1.0, 0.85), 0.15)
    self.assertEqual(figures.exposed_share(1.0, 1.1), 0.0)
    self.assertAlmostEqual(figures.overhead_percent(1.01, 1.0), 1.0)
