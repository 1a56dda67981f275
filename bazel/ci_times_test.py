"""What counts as slow, and what beyond its budget."""

import unittest

from bazel import ci_times


class CpuSecondsTest(unittest.TestCase):

  def test_reads_what_the_mains_write(self):
    self.assertEqual(ci_times.cpu_seconds('<testsuites processor_seconds="1.250"/>'), 1.25)

  def test_nothing_is_known_of_others(self):
    for text in ("<testsuites/>", '<testsuites processor_seconds=""/>', '<testsuites processor_seconds="x"/>', "torn", ""):
      self.assertIsNone(ci_times.cpu_seconds(text), text)


class CostTest(unittest.TestCase):

  def test_shards_add_up(self):
    cost = ci_times.Cost()
    cost.add(2.0, 1.0)
    cost.add(3.0, 0.5)
    self.assertEqual((cost.wall_s, cost.cpu_s), (5.0, 1.5))

  def test_one_that_is_unknown_makes_all_unknown(self):
    for order in ((1.0, None), (None, 1.0)):
      cost = ci_times.Cost()
      for cpu_s in order:
        cost.add(1.0, cpu_s)
      self.assertIsNone(cost.cpu_s)
      self.assertEqual(cost.wall_s, 2.0)


class BudgetsTest(unittest.TestCase):

  def test_lines(self):
    budgets = ci_times.parse_budgets("# comment\n\nplain * 60\nplain //a:a 90  # why\n")
    self.assertEqual(budgets, {("plain", "*"): 60, ("plain", "//a:a"): 90})

  def test_a_line_that_is_none_is_an_error(self):
    for text in ("plain 60", "plain * x", "plain * 0", "plain * -1", "plain * 1 2", "plain * 1\nplain * 2"):
      with self.assertRaises(ValueError, msg=text):
        ci_times.parse_budgets(text)

  def test_the_checked_in_file_is_right(self):
    with open("bazel/ci_budgets.txt", encoding="utf-8") as file:
      self.assertIn(("plain", "*"), ci_times.parse_budgets(file.read()))


class JudgeTest(unittest.TestCase):
  budgets = {("plain", "*"): 60, ("plain", "//big:big"): 200}

  def judge(self, run, label, cpu_s):
    warnings, failures = ci_times.judge({(run, label): ci_times.Cost(1000.0, cpu_s)}, self.budgets)
    return len(warnings), len(failures)

  def test_within_the_budget(self):
    self.assertEqual(self.judge("plain", "//a:a", 60.0), (0, 0))
    self.assertEqual(self.judge("plain", "//big:big", 199.0), (0, 0))

  def test_beyond_it_warns(self):
    self.assertEqual(self.judge("plain", "//a:a", 60.5), (1, 0))
    self.assertEqual(self.judge("plain", "//a:a", 180.0), (1, 0))

  def test_three_times_beyond_it_fails(self):
    self.assertEqual(self.judge("plain", "//a:a", 180.5), (0, 1))
    self.assertEqual(self.judge("plain", "//big:big", 600.5), (0, 1))

  def test_unknown_times_are_not_judged(self):
    self.assertEqual(self.judge("plain", "//a:a", None), (0, 0))
    self.assertEqual(self.judge("long-systems", "//a:a", 9999.0), (0, 0))

  def test_the_ten_slowest_by_the_clock(self):
    costs = {("plain", f"//a:{i}"): ci_times.Cost(float(i), None if i == 11 else 1.0) for i in range(12)}
    lines = ci_times.slowest(costs)
    self.assertEqual(len(lines), 10)
    self.assertEqual(lines[0], "slow: plain: //a:11: 11 s, processor seconds unknown")
    self.assertEqual(lines[1], "slow: plain: //a:10: 10 s, 1 processor seconds")
