"""The whole drill, as a user runs it with root."""

from tests.e2e.drill_process import DrillCase, run_drill


class Drill(DrillCase):

  def test_passes(self):
    # Rails so slow that a busy machine fills them all the time: a fault finds something on its way. The second one is made while the first
    # lasts: n0 sets the pace with three rails, and the four of n1 are empty for a quarter of the time.
    result = run_drill("--root-required", "--rate", "200mbit")
    self.expect_right(result, rate_gbps=0.8)
    self.assertEqual([(fault["kind"], fault["rail"]) for fault in result.summary["faults"]],
                     [("link-down", "n0/rail1"), ("link-down", "n1/rail1"), ("fail-nic", "n2/rail2")])
    for fault in result.summary["faults"]:
      self.assertGreater(fault["failovers"], 0, fault)
    for fault in (result.summary["faults"][0], result.summary["faults"][2]):
      self.assertGreater(fault["replayed_bytes"], 0, fault)
