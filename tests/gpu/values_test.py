import unittest

from tests.gpu import values


class Values(unittest.TestCase):

  def test_sums_are_exact_up_to_the_limit(self):
    for dtype in values.EXACT_MAX:
      for world in (2, 4, 8):
        pattern = values.pattern(dtype, world)
        largest = max(pattern.value(rank, iteration, index) for rank in range(world) for iteration in range(100) for index in range(200))
        self.assertLessEqual(largest, pattern.base_modulus + pattern.shift_modulus - 2)
        if values.sum_is_exact(dtype, world):
          self.assertLessEqual(world * largest, values.EXACT_MAX[dtype], (dtype, world))
    for dtype in ("float32", "bfloat16", "int8", "uint8", "float8_e4m3fn"):
      self.assertTrue(values.sum_is_exact(dtype, 4), dtype)
    self.assertFalse(values.sum_is_exact("bool", 2))

  def test_neighbours_ranks_and_iterations_differ(self):
    for dtype in ("float32", "bfloat16", "int8"):
      pattern = values.pattern(dtype, 4)
      row = [pattern.base(index) for index in range(64)]
      self.assertGreater(len(set(row)), min(8, pattern.base_modulus - 1))
      self.assertGreater(len({pattern.shift(rank, 0) for rank in range(4)}), 1)
      self.assertGreater(len({pattern.shift(0, iteration) for iteration in range(4)}), 1)

  def test_the_sum_of_the_values_is_the_sum_that_is_checked(self):
    pattern = values.pattern("float32", 4)
    for index in (0, 1, 12345678):
      total = sum(pattern.value(rank, 7, index) for rank in range(4))
      self.assertEqual(total, 4 * pattern.base(index) + pattern.shift_sum(4, 7))

  def test_every_type_has_a_size(self):
    self.assertEqual(set(values.EXACT_MAX), set(values.SIZE_BYTES))
