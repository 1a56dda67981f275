"""What the bench makes of the lines of a guest."""

import unittest

from tests.rigs.one_guest import bench


class FiguresOf(unittest.TestCase):

  def test_numbers_are_read_by_name_and_mebibytes_converted(self):
    output = "write_yield 44.50\nwrite_wait 80\nnoise 3\nib_send_bw 100\nplugin 0.08\nwrite_yield 46\n"
    values = bench.figures_of(output)
    self.assertEqual(values["write_yield"], [44.5, 46])
    self.assertEqual(values["write_wait"], [80])
    self.assertAlmostEqual(values["ib_send_bw"][0], 104.8576)
    self.assertEqual(values["plugin"], [20])

  def test_a_line_without_a_number_counts_as_missing(self):
    self.assertEqual(bench.figures_of("ib_send_bw \nib_send_bw failed\n")["ib_send_bw"], [])

  def test_the_table_has_median_least_and_most(self):
    text = bench.table({"write_yield": [3, 1, 2], "write_wait": [9, 7, 8], "ib_send_bw": [4, 6, 5], "plugin": [7, 7.2, 6]})
    self.assertIn("median of 3", text)
    self.assertIn("     2.0      1.0      3.0  writes with immediate, both ends ask", text)
    self.assertIn("the plugin has 0.88 of the better bare loop", text)
