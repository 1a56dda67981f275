import json
import unittest

from tests.bench import fault_figures
from tests.bench.fault_figures import Tally

LOG = """r2cc-perf[0] NET/R2CC INFO R2CC: rail rail1 is down: link event
r2cc-perf[0] NET/R2CC INFO R2CC: link rail1-rail1 to n1 given up (its link is down), 131072 bytes replayed after 812 us
r2cc-perf[0] NET/R2CC INFO R2CC: rail rail1 is up
r2cc-perf[0] NET/R2CC INFO R2CC: link rail1-rail1 to n1 given up (its connection broke), 0 bytes replayed after 90 us
"""


def tally(case="cut", **values):
  given_up = 0 if case == "gray" else 2
  return Tally(case=case, fabric="rail", **({"runs": 1, "waits_ms": [1.0], "given_up": given_up} | values))


class Stalls(unittest.TestCase):

  def test_leave_out_the_healthy_wait_of_the_middle_job(self):
    self.assertEqual(tally(waits_ms=[50.0, 30.0, 10.0], healthy_waits_ms=[20.0, 25.0, 300.0]).stalls_ms, [25.0, 5.0, 0.0])
    self.assertEqual(tally(waits_ms=[5.0]).stalls_ms, [5.0])


class Percentiles(unittest.TestCase):

  def test_are_values_that_occurred(self):
    values = [float(value) for value in range(100, 0, -1)]
    self.assertEqual([fault_figures.percentile(values, share) for share in (0.5, 0.99, 1.0)], [50.0, 99.0, 100.0])

  def test_with_few_values_it_is_the_largest(self):
    self.assertEqual(fault_figures.percentile([3.0, 1.0], 0.99), 3.0)
    self.assertIsNone(fault_figures.percentile([], 0.99))


class Migrations(unittest.TestCase):

  def test_are_counted_in_the_log(self):
    self.assertEqual(fault_figures.links_given_up(LOG), 2)
    self.assertEqual(fault_figures.links_given_up(""), 0)


class Left(unittest.TestCase):

  def test_neighbours_that_lost_different_rails(self):
    lost = [(0, 1), (1, 2)]
    self.assertEqual(fault_figures.left_share("full", lost, 4), 0.75)
    self.assertEqual(fault_figures.left_share("rail", lost, 4), 0.5)

  def test_the_same_rail_lost_twice_is_one(self):
    self.assertEqual(fault_figures.left_share("rail", [(0, 1), (1, 1)], 4), 0.75)
    self.assertEqual(fault_figures.left_share("full", [(0, 0), (0, 1), (1, 1)], 4), 0.5)


class Asked(unittest.TestCase):

  def test_a_cut(self):
    self.assertEqual(fault_figures.missed(tally(waits_ms=[19.0] * 99 + [500.0], runs=100), 250), [])
    self.assertEqual(fault_figures.missed(tally(waits_ms=[19.0] * 98 + [500.0] * 2, runs=100), 250), ["p99 above 20 ms"])
    self.assertEqual(fault_figures.missed(tally(waits_ms=[]), 250), ["p99 above 20 ms"])

  def test_silence_is_measured_by_its_setting(self):
    self.assertEqual(fault_figures.missed(tally("silence", waits_ms=[300.0]), 250), [])
    self.assertEqual(fault_figures.missed(tally("silence", waits_ms=[300.0]), 200), ["a stall above 250 ms"])

  def test_goodput_and_fences_of_a_gray_rail(self):
    self.assertEqual(fault_figures.missed(tally("gray", goodput_ratios=[0.96]), 250), [])
    self.assertEqual(fault_figures.missed(tally("gray", goodput_ratios=[0.9], given_up=1), 250),
                     ["median goodput below 0.95 of what is left", "worst goodput below 0.95 of what is left", "1 fences"])
    # One job in which a sound rail lay idle is not made good by the others.
    self.assertEqual(fault_figures.missed(tally("different", goodput_ratios=[0.689, 1.0, 1.01]), 250),
                     ["worst goodput below 0.95 of what is left"])

  def test_migrations_of_a_flap(self):
    self.assertEqual(fault_figures.missed(tally("flap", flaps=20, given_up=40), 250), [])
    self.assertEqual(fault_figures.missed(tally("flap", flaps=20, given_up=41), 250), ["more than 2 migrations a flap"])

  def test_wrong_data_and_errors_anywhere(self):
    for case in ("double", "blackout", "dead-at-start"):
      self.assertEqual(fault_figures.missed(tally(case, wrong=3, late_writes=1, errors=["x"]), 250),
                       ["3 wrong elements", "1 late writes", "1 errors"])

  def test_a_cut_without_a_migration_was_not_seen_at_all(self):
    self.assertIn("no migration was counted", fault_figures.missed(tally(given_up=0), 250)[0])

  def test_nothing_ran(self):
    self.assertIn("nothing ran", fault_figures.missed(Tally("double", "full"), 250))


class Lines(unittest.TestCase):

  def test_names_are_those_that_were_asked_for(self):
    result = json.loads(json.dumps(fault_figures.json_object(tally(waits_ms=[1.0, 3.0, 2.0], runs=3), 250)))
    wanted = {"case": "cut", "fabric": "rail", "stall_ms_p50": 2.0, "stall_ms_p99": 3.0, "stall_ms_max": 3.0, "wrong": 0, "late_writes": 0,
              "errors": 0, "runs": 3}
    self.assertEqual(result | wanted, result)
    self.assertNotIn("goodput_ratio", result)

  def test_goodput_migrations_and_fences_where_they_belong(self):
    self.assertEqual(fault_figures.json_object(tally("different", goodput_ratios=[0.9, 0.97, 0.99]), 250)["goodput_ratio"], 0.97)
    self.assertEqual(fault_figures.json_object(tally("flap", flaps=20, given_up=30), 250)["migrations_per_flap"], 1.5)
    self.assertEqual(fault_figures.json_object(tally("gray", goodput_ratios=[1.0]), 250)["fences"], 0)

  def test_a_row_is_as_wide_as_its_header(self):
    result = fault_figures.json_object(tally("blackout", resumes_ms=[12.0]), 250)
    row = fault_figures.table_row(result)
    self.assertEqual(row.index("yes"), fault_figures.table_header().index("as asked"))
    self.assertIn("NO: nothing ran", fault_figures.table_row(fault_figures.json_object(Tally("double", "full"), 250)))
