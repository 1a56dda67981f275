import unittest

from deploy.drill import chart


class ChartTest(unittest.TestCase):

  def test_bars_fill_from_the_foot(self):
    self.assertEqual("".join(chart.column_cells(0.0, 2.0)), " " * chart.ROWS)
    self.assertEqual("".join(chart.column_cells(2.0, 2.0)), "█" * chart.ROWS)
    self.assertEqual("".join(chart.column_cells(1.0, 2.0)), "█" * (chart.ROWS // 2) + " " * (chart.ROWS // 2))
    self.assertEqual("".join(chart.column_cells(5.0, 2.0)), "█" * chart.ROWS)
    self.assertEqual("".join(chart.column_cells(0.0, 0.0)), " " * chart.ROWS)

  def test_marks_that_share_a_column_go_below_each_other(self):
    self.assertEqual(chart.mark_rows([(0, "A"), (2, "B"), (2, "C")], 4), ["A B ", "  C "])

  def test_lines_are_of_one_width(self):
    text = chart.draw(chart.Chart(values=[0.0, 1.0, 2.0] * 10, marks=[(3, "A")], seconds=12, line=2.0, unit="Gb/s")).plain
    bars = text.splitlines()[:chart.ROWS]
    self.assertEqual({len(line) for line in bars}, {9 + 30})
    self.assertIn("2.00 │", bars[0])
    self.assertTrue(text.endswith("12 s"))

  def test_no_traffic_at_all(self):
    self.assertIn("Gb/s", chart.draw(chart.Chart(values=[0.0] * 20, marks=[], seconds=1, line=None, unit="Gb/s")).plain)
