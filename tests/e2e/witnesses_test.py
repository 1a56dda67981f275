"""A verdict of silence ends when no daemon is left that could take it back."""

import time

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

# RailWatch's kAloneMax: the verdict outlives its last witness for this long.
ALONE_MAX_S = 60
# The last answer, and what the store keeps of a node that has left, are a minute old at most when nobody counts as left.
FORGOTTEN_WITHIN_S = 2 * ALONE_MAX_S + 30


class Witnesses(NamespaceCase):
  """Three nodes of two rails with one r2ccd each, and no job."""

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(nodes=3, rails=2, rate="500mbit"))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.enterContext(Processes(self.folder)))
    self.cluster.start_daemons()

  def nic(self, rail: RailId) -> dict:
    return self.cluster.ctl_json(rail.node, "nic", "why", str(rail))["nic"]

  def weight(self, rail: RailId) -> int:
    """In the plan of its own node."""
    return next(int(nic.get("weight_permille", 0)) for nic in self.cluster.ctl_json(rail.node, "plan", "show")["nics"]
                if (nic["node"], nic["nic"]) == (f"n{rail.node}", f"rail{rail.rail}"))

  def expect_state(self, rail: RailId, states: tuple[str, ...], within_s: float) -> None:
    reached = wait_until(lambda: self.nic(rail)["state"] in states, within_s, 0.2)
    self.assertTrue(reached, f"{rail}: wanted {states}, it is {self.nic(rail)}")

  def test_a_silence_that_ended_while_nobody_listened(self) -> None:
    rail = RailId(0, 0)
    self.lab.blackhole(rail)
    self.expect_state(rail, ("FAILED",), PATIENCE_S)
    for witness in (1, 2):
      self.cluster.kill_daemon(witness)
    left_s = time.monotonic()
    self.lab.unblackhole(rail)
    self.expect_state(rail, ("PROVING", "HEALTHY"), FORGOTTEN_WITHIN_S)
    took_s = time.monotonic() - left_s
    print(f"{rail} is tried again {took_s:.0f} s after its witnesses have left")
    self.assertGreater(took_s, ALONE_MAX_S - 5, "nobody has had the time to come back")
    self.expect_state(rail, ("HEALTHY",), PATIENCE_S)
    self.assertTrue(wait_until(lambda: self.weight(rail) > 0, PATIENCE_S, 0.2), "jobs do not try it")
    self.assertIn("no other node is left to ask", self.cluster.ctl(0, "nic", "why", str(rail)))
    # Its witnesses come back, and judge it as before.
    for witness in (1, 2):
      self.cluster.start_daemon(witness)
    for witness in (1, 2):
      self.cluster.wait_ready(witness)
    self.expect_answers(rail)
    self.lab.blackhole(rail)
    self.expect_state(rail, ("FAILED",), PATIENCE_S)

  def expect_answers(self, rail: RailId) -> None:
    """Both witnesses answer it."""
    answering = lambda: sum(pair["state"] == "up" for pair in self.cluster.ctl_json(rail.node, "nic", "why", str(rail))["pairs"])
    self.assertTrue(wait_until(lambda: answering() == 2, PATIENCE_S, 0.2), self.cluster.ctl(rail.node, "nic", "why", str(rail)))
