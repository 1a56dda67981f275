import types
import unittest

from tests.gpu import case_healthy
from tests.gpu.case_healthy import Timed


class Ranks:
  """A job whose ranks answer what they are given."""

  def __init__(self, *answers: dict):
    self.answers, self.asked = list(answers), []

  def ask(self, command: dict, timeout_s: float) -> list[dict]:
    del timeout_s
    self.asked.append(command)
    return self.answers


class HealthyTest(unittest.TestCase):

  def test_the_slowest_rank_counts(self):
    job = Ranks({"seconds": [1.0, 5.0], "first_seconds": [9.0, None]}, {"seconds": [2.0, 4.0], "first_seconds": [8.0, None]})
    context = types.SimpleNamespace(setup=types.SimpleNamespace(size=lambda size: size // 2))
    found = case_healthy.block(context, job, [(8, 10, 50), (1 << 20, 0, 4)])
    self.assertEqual(found, [Timed(2.0, 9.0), Timed(5.0, None)])
    self.assertEqual(job.asked[0]["items"], [[8, 10, 50], [1 << 19, 0, 4]])

  def test_each_job_comes_as_often_at_each_place_and_after_each_other(self):
    orders = [case_healthy.turns(("a", "b", "c", "d"), pair) for pair in range(48)]
    for name in "abcd":
      self.assertEqual({place: sum(order[place] == name for order in orders) for place in range(4)}, dict.fromkeys(range(4), 12))
      before = [order[order.index(name) - 1] for order in orders if order.index(name) > 0]
      self.assertEqual({other: before.count(other) for other in before}, dict.fromkeys(set("abcd") - {name}, 12))

  def test_compares_times_with_socket(self):
    result = case_healthy.comparison({"r2cc": [Timed(3e-6, 8e-6)] * 30, "socket": [Timed(2e-6, 4e-6)] * 30,
                                      "socket-again": [Timed(1e-6, 4e-6)] * 30})
    self.assertEqual((result["r2cc_us"], result["socket_us"], result["r2cc_first_us"]), (3.0, 2.0, 8.0))
    self.assertEqual((result["time_over_socket"]["ratio"], result["first_time_over_socket"]["ratio"]), (1.5, 2.0))
    self.assertEqual(result["socket-again_over_socket"]["ratio"], 0.5)
    self.assertNotIn("time_over_socket-again", result)

  def test_a_ratio_of_speeds_for_each_life(self):
    ours, others = [Timed(1.0, None)] * 6, [Timed(time_s, None) for time_s in (1.0, 2.0, 3.0, 5.0, 4.0, 6.0)]
    self.assertEqual(case_healthy.by_life(ours, others, 2), [2.0, 5.0])

  def test_without_a_warm_up_there_is_no_first_time(self):
    result = case_healthy.comparison({"r2cc": [Timed(3e-6, None)], "socket": [Timed(2e-6, None)]})
    self.assertEqual(set(result), {"r2cc_us", "socket_us", "time_over_socket"})
