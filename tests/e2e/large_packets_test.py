"""Packets that are lost for their size are found by the daemons alone, without a job (docs/operate/diagnose.md)."""

import time
import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

# A fault is known within a second; the rest is for a machine that does much else.
KNOWN_S = 5
RAIL = RailId(1, 1)
# A switch port whose MTU was reset loses these, in one direction.
LARGE = "meta length > 1500"


class LargePackets(NamespaceCase):

  def make(self, nodes: int) -> None:
    self.lab = self.enterContext(NamespaceLab(nodes=nodes, rails=2, rate=None))
    processes = self.enterContext(Processes(self.folder))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, processes)
    self.cluster.start_daemons()
    for node in range(nodes):
      for rail in range(2):
        self.assertTrue(wait_until(lambda: self.passes(RailId(node, rail)), PATIENCE_S, 0.1), f"n{node}/rail{rail}: {self.why(node, rail)}")

  def why(self, node: int, rail: int) -> dict:
    return self.cluster.ctl_json(node, "nic", "why", f"n{node}/rail{rail}")

  def passes(self, rail: RailId) -> bool:
    """All its pairs say that large packets pass."""
    pairs = self.why(rail.node, rail.rail).get("pairs", [])
    return len(pairs) == self.lab.nodes - 1 and all(pair.get("large") == "passes" for pair in pairs)

  def expect(self, node: int, rail: int, state: str, words: str, patience_s: float = KNOWN_S) -> dict:
    result = [{}]

    def as_expected() -> bool:
      result[0] = self.why(node, rail)
      return result[0]["nic"]["state"] == state and words in result[0]["verdict_text"]

    since = time.monotonic()
    self.assertTrue(wait_until(as_expected, patience_s, 0.05), f"n{node}/rail{rail}: wanted {state} and '{words}', it is {result[0]}")
    print(f"n{node}/rail{rail} is {state} after {time.monotonic() - since:.2f} s: {result[0]['verdict_text']}", flush=True)
    return result[0]

  def forbidden(self, node: int) -> list[tuple[str, str]]:
    return [(f"{path['node']}/{path['nic']}", f"{path['peer_node']}/{path['peer_nic']}")
            for path in self.cluster.ctl_json(node, "plan", "show").get("broken_paths", [])]

  def test_a_port_of_three(self):
    self.make(3)
    self.lab.lose(RAIL, LARGE)
    answer = self.expect(1, 1, "DEGRADED", "packets over 1500 bytes are lost at the port of n1/rail1")
    self.assertEqual(answer["verdict"], "port")
    self.assertIn("large-lost", [entry["kind"] for entry in answer["evidence"]])
    paths = [("n0/rail1", "n1/rail1"), ("n1/rail1", "n2/rail1")]
    for node in range(3):
      self.assertTrue(wait_until(lambda: self.forbidden(node) == paths, PATIENCE_S, 0.05), f"n{node} forbids {self.forbidden(node)}")
    events = [event["message"] for event in self.cluster.events(1) if event["kind"] == "nic-state" and event["nic"] == "rail1"]
    self.assertIn("packets over 1500 bytes are lost", events[-1])
    reasons = {f"{one['planned']['node']}/{one['planned']['nic']}": one["reason"]
               for one in self.cluster.ctl_json(0, "plan", "why")["reasons"]}
    self.assertIn("packets over 1500 bytes are lost", reasons["n1/rail1"])
    self.assertRegex(self.cluster.ctl(1, "nic", "why", "n1/rail1"), r"n1/rail1 +n0/rail1 +up .* lost ")
    # The others have no fault, and what they lose with it is explained.
    self.expect(0, 1, "HEALTHY", "port of the other end")
    self.expect(0, 0, "HEALTHY", "nothing is wrong")
    self.lab.lose_nothing(RAIL)
    self.expect(1, 1, "HEALTHY", "nothing is wrong", PATIENCE_S)
    self.assertTrue(wait_until(lambda: self.forbidden(0) == [], PATIENCE_S, 0.05), self.forbidden(0))

  def test_one_way_between_two(self):
    self.make(2)
    self.lab.lose(RAIL, LARGE)
    for node in range(2):
      self.expect(node, 1, "DEGRADED", "packets over 1500 bytes are lost from n0/rail1 to n1/rail1")
    self.expect(0, 0, "HEALTHY", "nothing is wrong")
    self.lab.lose_nothing(RAIL)
    for node in range(2):
      self.expect(node, 1, "HEALTHY", "nothing is wrong", PATIENCE_S)
