from deploy.drill.rig.lab import RailId
from deploy.drill.rig.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase


class DaemonSteers(ClusterCase):
  """The daemon is no decoration: with the plugin's own link monitor off, what happens here happens through r2ccd alone."""

  environment = {"R2CC_LINK_MONITOR": "0"}

  def test_drain_moves_the_bytes_off_and_undrain_brings_them_back(self):
    self.assertGreater(self.shares_sent(0)["rail1"], 0.1)
    self.cluster.ctl(0, "nic", "drain", "n0/rail1")
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail1"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.assertLess(self.shares_received(0)["rail1"], 0.02)
    self.expect_iterations(3)
    self.cluster.ctl(0, "nic", "undrain", "n0/rail1")
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail1"] > 0.2, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()

  def test_a_drain_at_another_nodes_daemon_is_heard_too(self):
    self.cluster.ctl(2, "nic", "drain", "n0/rail3")
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail3"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()

  def test_a_weight_sets_the_share(self):
    self.cluster.ctl(0, "nic", "weight", "n0/rail3", "50%")
    plan = {"rail0": 2 / 7, "rail1": 2 / 7, "rail2": 2 / 7, "rail3": 1 / 7}
    seen = [{}]

    def as_planned() -> bool:
      seen[0] = self.shares_sent(0, seconds=4)
      return all(abs(seen[0][rail] / share - 1) <= 0.05 for rail, share in plan.items())

    self.assertTrue(wait_until(as_planned, PATIENCE_S), f"planned {plan}, counted {seen[0]}")
    # Not in one lucky window: from now on.
    for window in range(5):
      self.assertTrue(as_planned(), f"planned {plan}, counted {seen[0]} in window {window} after the first that was right")
    self.expect_right_end()

  def test_the_remote_ends_nic_is_survived(self):
    """n0 and n2 have a link event neither of their own nor of their plugin."""
    fault_ns = self.lab.cut(RailId(1, 2))
    self.expect_iterations(5)
    failovers = lambda: [event for event in self.failover_events() if int(event["monotonic_ns"]) >= fault_ns]
    told = lambda: {event["node"] for event in failovers()}
    self.assertTrue(wait_until(lambda: "n0" in told(), PATIENCE_S, 0.2), told())
    # With no link monitor in any plugin the page alone says so: before silence, which takes R2CC_SILENCE_MS, could.
    self.assertEqual({event["cause"] for event in failovers()}, {"page-notice"})
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail2"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.lab.heal(RailId(1, 2))
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail2"] > 0.2, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()
