import random
import unittest

from tests.bench import paired


class Bounds(unittest.TestCase):

  def test_ranks_are_those_of_the_sign_test(self):
    # From the tables of the binomial distribution with p = 1/2, two-sided 95 %.
    self.assertEqual({count: paired.bound_rank(count) for count in (1, 5, 6, 8, 9, 15, 20, 25, 30, 100)},
                     {1: None, 5: None, 6: 1, 8: 1, 9: 2, 15: 4, 20: 6, 25: 8, 30: 10, 100: 40})

  def test_median_and_bounds(self):
    self.assertEqual(paired.median([float(value) for value in range(30, 0, -1)]), paired.Median(15.5, 10.0, 21.0, 30))
    self.assertEqual(paired.median([3.0, 1.0, 2.0]), paired.Median(2.0, None, None, 3))

  def test_one_mad_run_moves_nothing(self):
    calm = paired.median([1.0 + step / 1000 for step in range(30)])
    mad = paired.median([1.0 + step / 1000 for step in range(29)] + [50.0])
    self.assertEqual((calm.value, calm.high), (mad.value, mad.high))

  def test_bounds_hold_the_true_median_at_their_confidence(self):
    source = random.Random(7)
    held = 0
    for _ in range(2000):
      found = paired.median([source.expovariate(1.0) for _ in range(30)])
      held += found.low <= 0.6931471805599453 <= found.high
    self.assertGreater(held / 2000, 0.94)

  def test_ratios_are_of_pairs(self):
    self.assertEqual(paired.ratios([2.0, 9.0], [1.0, 3.0]), [2.0, 3.0])
    with self.assertRaises(ValueError):
      paired.ratios([1.0], [])

  def test_each_side_begins_as_often(self):
    self.assertEqual(sum(paired.ours_first(pair) for pair in range(30)), 15)
