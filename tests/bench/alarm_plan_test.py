import unittest

from tests.bench import alarm_plan
from tests.bench.alarm_plan import Alarms, Stop


class Plan(unittest.TestCase):

  def test_is_the_same_for_the_same_seed(self):
    self.assertEqual(alarm_plan.plan(600, 4, 20, seed=3), alarm_plan.plan(600, 4, 20, seed=3))
    self.assertNotEqual(alarm_plan.plan(600, 4, 20, seed=3), alarm_plan.plan(600, 4, 20, seed=4))

  def test_stays_within_its_bounds(self):
    for seed in range(50):
      stops = alarm_plan.plan(1800, 4, 20, seed)
      self.assertGreater(len(stops), 30)
      for stop in stops:
        self.assertTrue(1 <= stop.seconds <= 40 and 0 <= stop.rank < 4 and stop.end_s <= 1800, stop)
      self.assertTrue(any(stop.seconds > 20 for stop in stops))
      self.assertEqual({stop.rank for stop in stops}, {0, 1, 2, 3})

  def test_a_rank_runs_before_it_is_stopped_again(self):
    for seed in range(50):
      stops = alarm_plan.plan(1800, 2, 20, seed)
      for rank in range(2):
        own = sorted((stop.at_s, stop.end_s) for stop in stops if stop.rank == rank)
        for (_, end_s), (begin_s, _) in zip(own, own[1:]):
          self.assertGreaterEqual(begin_s - end_s, 2.9)

  def test_two_ranks_are_stopped_at_once_now_and_then(self):
    stops = alarm_plan.plan(1800, 4, 20, seed=1)
    self.assertTrue(any(one.at_s < other.at_s < one.end_s for one, other in zip(stops, stops[1:])))

  def test_two_minutes_have_stops_too(self):
    self.assertGreater(len(alarm_plan.plan(120, 4, 20, seed=1)), 2)


class Reported(unittest.TestCase):

  def test_asked_is_silence(self):
    alarms = Alarms(seconds=90, stops=[Stop(1, 0, 25.0), Stop(40, 1, 2.0)], deadline_s=20, iterations=5)
    result = alarms.json_object()
    self.assertEqual((result["minutes"], result["stops"], result["stops_beyond_deadline"], result["as_asked"]), (1.5, 2, 1, True))
    for change in ({"migrations": 1}, {"errors": ["x"]}, {"wrong": 1}, {"late_writes": 1}, {"stops": []}):
      self.assertFalse(Alarms(**({"stops": alarms.stops} | change)).json_object()["as_asked"], change)
    self.assertIn("2 stops of up to 25 s (1 beyond", alarms.text())
