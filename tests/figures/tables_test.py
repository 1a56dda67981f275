import unittest

from tests.figures import tables
from tests.figures.published import PUBLISHED, Value, overhead_percent

TEXT = "#one\np,loss,time\n3,1/2,1.5004\n4,1/2,1.3\n\n#two\nname\nring\n\n"


class ParseTest(unittest.TestCase):

  def test_reads_every_table(self):
    parsed = tables.parse(TEXT)
    self.assertEqual(["one", "two"], list(parsed))
    self.assertEqual(["p", "loss", "time"], parsed["one"].columns)
    self.assertEqual([1.5004, 1.3], parsed["one"].numbers("time"))
    self.assertEqual([["4", "1/2", "1.3"]], parsed["one"].where(p="4").rows)

  def test_refuses_what_is_no_table(self):
    with self.assertRaisesRegex(ValueError, "begins with"):
      tables.parse("p,loss\n1,2\n")
    with self.assertRaisesRegex(ValueError, "one: its rows differ"):
      tables.parse("#one\np,loss\n1\n\n")

  def test_csv_is_what_was_read(self):
    self.assertEqual("p,loss,time\n3,1/2,1.5004\n4,1/2,1.3\n", tables.parse(TEXT)["one"].csv())


class PublishedTest(unittest.TestCase):

  def test_puts_published_value_and_difference_next_to_ours(self):
    joined = tables.with_published(tables.parse(TEXT)["one"], {("3", "1/2", "time"): Value("1.51", "a paper")})
    self.assertEqual(["p", "loss", "time", "time_published", "time_difference"], joined.columns)
    self.assertEqual([["3", "1/2", "1.5004", "1.51", "-0.01"], ["4", "1/2", "1.3", "", ""]], joined.rows)

  def test_a_difference_below_the_last_digit_is_none(self):
    joined = tables.with_published(tables.parse(TEXT)["one"], {("3", "1/2", "time"): Value("1.50", "a paper")})
    self.assertEqual("0.00", joined.rows[0][-1])

  def test_a_published_value_without_a_row_is_an_error(self):
    with self.assertRaisesRegex(ValueError, "nothing to put beside"):
      tables.with_published(tables.parse(TEXT)["one"], {("5", "1/2", "time"): Value("1.51", "a paper")})
    with self.assertRaisesRegex(ValueError, "nothing to put beside"):
      tables.with_published(tables.parse(TEXT)["one"], {("3", "1/2", "speed"): Value("1.51", "a paper")})

  def test_overhead_is_of_time(self):
    self.assertEqual("100.00", overhead_percent(2, 1))
    self.assertEqual("1.32", PUBLISHED["training"]["2.7B data parallel 2x8", "Balance", "overhead_percent"].text)

  def test_every_published_value_is_a_number_with_a_source(self):
    for table, values in PUBLISHED.items():
      for key, value in values.items():
        self.assertGreater(value.number, 0, (table, key))
        self.assertTrue(value.source, (table, key))
