from testing.lab.lab import RailId
from testing.lab.processes import wait_until
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

  def test_a_drain_at_another_nodes_daemon_counts_too(self):
    self.cluster.ctl(2, "nic", "drain", "n0/rail3")
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail3"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()

  def weights(self) -> dict[str, int] | None:
    """Of n0's ways to n1, in permille, as n0's daemon plans them; None: it doubts a NIC of the two, and then the job goes by its own
    measure of that rail too."""
    nics = [nic for nic in self.cluster.ctl_json(0, "plan", "show")["nics"] if nic["node"] in ("n0", "n1")]
    if any(nic["state"] != "HEALTHY" for nic in nics):
      return None
    return {rail: min(nic["weight_permille"] for nic in nics if nic["nic"] == rail) for rail in {nic["nic"] for nic in nics}}

  def expect_shares(self, weights: dict[str, int], tries: int) -> None:
    """By n0's counters, over a window in which the plan said so from the beginning to the end. On a busy machine a rail may stand still
    for a moment, is then planned as a slow one for some seconds, and carries less by right: such a window says nothing of `weights`."""
    planned = {rail: weight / sum(weights.values()) for rail, weight in weights.items()}
    counted: dict[str, float] = {}

    def window() -> bool:
      """One in which the plan stayed."""
      nonlocal counted
      if self.weights() != weights:
        return False
      plans = self.plans_published()
      counted = self.shares_sent(0, seconds=4)
      return self.weights() == weights and self.plans_published() == plans

    for last in reversed(range(tries)):
      self.assertTrue(wait_until(window, PATIENCE_S, 0.2), f"no 4 s with the weights {weights}; they are {self.weights()}")
      if all(abs(counted[rail] / share - 1) <= 0.05 for rail, share in planned.items()):
        return
      self.assertGreater(last, 0, f"planned {planned}, counted {counted}")

  def plans_published(self) -> int:
    return sum(1 for event in self.cluster.events(0) if event["kind"] == "plan-published")

  def test_a_weight_sets_the_share(self):
    self.cluster.ctl(0, "nic", "weight", "n0/rail3", "50%")
    weights = {"rail0": 1000, "rail1": 1000, "rail2": 1000, "rail3": 500}
    # What was sent before the weight is still on its way in the first ones.
    self.expect_shares(weights, tries=10)
    # Not in one lucky window: from now on.
    for _ in range(5):
      self.expect_shares(weights, tries=1)
    self.expect_right_end()

  def test_the_remote_ends_nic_is_survived(self):
    """n0 and n2 have a link event neither of their own nor of their plugin."""
    fault_ns = self.lab.cut(RailId(1, 2))
    self.expect_iterations(5)
    failovers = lambda: [event for event in self.failover_events() if int(event["monotonic_ns"]) >= fault_ns]
    reporters = lambda: {event["node"] for event in failovers()}
    self.assertTrue(wait_until(lambda: "n0" in reporters(), PATIENCE_S, 0.2), reporters())
    # With no link monitor in any plugin the page alone says so: before silence, which takes R2CC_SILENCE_MS, could.
    self.assertEqual({event["cause"] for event in failovers()}, {"page-notice"})
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail2"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.lab.heal(RailId(1, 2))
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail2"] > 0.2, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()
