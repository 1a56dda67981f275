"""Whose fault it is, as `r2ccctl nic why` says it: real daemons, and a job that keeps the rails full while they probe them."""

from testing.lab.lab import RailId
from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase


class Verdicts(ClusterCase):

  def why(self, rail: RailId, asked: int) -> dict:
    return self.cluster.ctl_json(asked, "nic", "why", str(rail))

  def expect_verdict(self, rail: RailId, verdict: str, asked: int = 3, state: str | None = None) -> dict:
    """Until the daemon of node `asked` says so of `rail`; its whole answer. `state`: and what comes of it, a moment later."""
    result = [{}]

    def as_expected() -> bool:
      result[0] = self.why(rail, asked)
      return result[0]["verdict"] == verdict and state in (None, result[0]["nic"]["state"])

    self.assertTrue(wait_until(as_expected, PATIENCE_S, 0.1), f"{rail}: wanted '{verdict}' and {state or 'any state'}, it is {result[0]}")
    return result[0]

  def expect_planned(self, rail: RailId, state: str) -> None:
    """On every node's page."""
    def planned(node: int) -> str:
      nics = self.cluster.ctl_json(node, "plan", "show")["nics"]
      return next(nic["state"] for nic in nics if f"{nic['node']}/{nic['nic']}" == str(rail))

    for node in range(self.lab.nodes):
      self.assertTrue(wait_until(lambda: planned(node) == state, PATIENCE_S, 0.1), f"n{node} plans {rail} {planned(node)}, not {state}")

  def expect_forbidden(self, paths: list[tuple[str, str]]) -> None:
    """In every node's plan."""
    def forbidden(node: int) -> list[tuple[str, str]]:
      return [(f"{path['node']}/{path['nic']}", f"{path['peer_node']}/{path['peer_nic']}")
              for path in self.cluster.ctl_json(node, "plan", "show").get("broken_paths", [])]

    for node in range(self.lab.nodes):
      self.assertTrue(wait_until(lambda: forbidden(node) == paths, PATIENCE_S, 0.1), f"n{node} forbids {forbidden(node)}, not {paths}")

  def test_the_port_of_either_end(self):
    for bad, good in ((RailId(1, 2), RailId(0, 2)), (RailId(0, 1), RailId(1, 1))):
      with self.subTest(f"port of {bad}"):
        self.lab.blackhole(bad)
        answer = self.expect_verdict(bad, "port", state="FAILED")
        self.assertIn(f"port of {bad}", answer["verdict_text"])
        self.assertTrue(answer["nic"]["link_up"])
        self.assertIn("rail-silent", [entry["kind"] for entry in answer["evidence"]])
        self.assertIn(str(bad), self.expect_verdict(good, "peers")["verdict_text"])
        self.expect_planned(bad, "FAILED")
        self.expect_planned(good, "HEALTHY")
        self.expect_iterations(2)
        self.lab.unblackhole(bad)
        self.expect_verdict(bad, "none")
        self.expect_planned(bad, "HEALTHY")
    self.expect_right_end()

  def test_the_path_between_two_nodes_only(self):
    one, other = RailId(0, 3), RailId(2, 3)
    self.lab.part(one, other)
    for rail, far in ((one, other), (other, one)):
      answer = self.expect_verdict(rail, "path")
      self.assertIn(f"path between {rail} and {far} only", answer["verdict_text"])
      self.assertNotEqual(answer["nic"]["state"], "FAILED")
    self.expect_planned(one, "DEGRADED")
    self.expect_forbidden([(str(one), str(other))])
    for rail in (RailId(1, 3), RailId(3, 3)):
      self.assertEqual(self.why(rail, 0)["verdict"], "none")
    matrix = self.cluster.ctl_json(1, "path", "probe", "n0", "n2")["pairs"]
    self.assertEqual({pair["nic"]: pair["state"] for pair in matrix}, {"rail0": "up", "rail1": "up", "rail2": "up", "rail3": "silent"})
    self.expect_iterations(2)
    self.lab.join(one, other)
    self.expect_verdict(one, "none")
    self.expect_planned(one, "HEALTHY")
    self.expect_forbidden([])
    self.expect_right_end()

  def test_a_link_that_its_own_kernel_reports_down(self):
    rail = RailId(2, 0)
    self.lab.cut_switch_port(rail)
    answer = self.expect_verdict(rail, "port")
    self.assertIn("the kernel of its node reports", answer["verdict_text"])
    self.assertIn("link-down", [entry["kind"] for entry in answer["evidence"]])
    self.lab.heal_switch_port(rail)
    self.expect_verdict(rail, "none")
    self.expect_right_end()

  def test_a_rail_that_is_reshaped_is_degraded_and_its_weight_follows(self):
    rail = RailId(1, 1)
    self.lab.reshape(rail, "100mbit")
    answer = self.expect_verdict(rail, "measured")
    self.assertEqual(answer["nic"]["state"], "DEGRADED")
    self.assertIn("of the best rail", answer["nic"]["reason"])
    self.assertLess(answer["planned"]["weight_permille"], 1000)
    reasons = {f"{one['planned']['node']}/{one['planned']['nic']}": one["reason"] for one in
               self.cluster.ctl_json(0, "plan", "why")["reasons"]}
    self.assertIn("jobs report", reasons[str(rail)])
    self.lab.reshape(rail, self.rate)
    self.expect_verdict(rail, "none")
    self.expect_right_end()
