"""r2ccctl conditions: real daemons, a rail that is cut, and an API server that takes what Kubernetes' published models allow."""

import datetime
import pathlib
import subprocess
import unittest

from testing.lab.cluster import Cluster
from testing.lab.binaries import built_binaries
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase
from tests.kubernetes.fake_api_server import FakeApiServer


class ConditionsTest(NamespaceCase):

  def setUp(self) -> None:
    super().setUp()
    self.api = self.enterContext(FakeApiServer(self.folder, ["n0", "n1", "n8", "n9"]))
    self.lab = self.enterContext(NamespaceLab(nodes=3, rails=2, rate="500mbit"))
    self.processes = self.enterContext(Processes(self.folder))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.processes)
    self.cluster.start_daemons()
    self.starts = 0

  def start(self, account: pathlib.Path | None = None) -> ManagedProcess:
    self.starts += 1
    return self.processes.start(f"conditions-{self.starts}", [
        str(self.cluster.binaries.ctl), "--run_dir", str(self.cluster.run_dir(0)), "conditions",
        "--api-server", self.api.address, "--account", str(account or self.api.account)])

  def expect(self, node: str, status: str) -> dict:
    self.assertTrue(wait_until(lambda: self.api.condition(node).get("status") == status, PATIENCE_S, 0.1),
                    f"{node}: wanted {status}, it is {self.api.condition(node)}; refused: {self.api.refused}")
    return dict(self.api.condition(node))

  def test_a_fault_is_a_condition_and_an_event_and_so_is_its_end(self) -> None:
    conditions = self.start()
    for node in ("n0", "n1"):
      self.expect(node, "False")
    self.assertEqual(self.api.events, [], "that all is well is no news")
    self.lab.cut(RailId(1, 1))
    degraded = self.expect("n1", "True")
    self.assertEqual(degraded["reason"], "RailDegraded")
    self.assertRegex(degraded["message"], "^rail1 FAILED: .*1 of 2 rails usable$")
    self.assertTrue(wait_until(lambda: len(self.api.events) == 1, PATIENCE_S, 0.1), self.api.events)
    event = self.api.events[0]
    self.assertEqual((event["type"], event["reason"], event["involvedObject"]),
                     ("Warning", "R2CCRailDegraded", {"kind": "Node", "name": "n1", "uid": "n1"}))
    self.assertEqual(self.api.condition("n0")["status"], "False", "the other end of the cable is not at fault")
    # A restart is no news, and changes nothing but the heartbeat.
    conditions.kill()
    before = self.api.patched.count("n1")
    conditions = self.start()
    self.assertTrue(wait_until(lambda: self.api.patched.count("n1") > before, PATIENCE_S, 0.1), "it writes nothing")
    self.assertEqual(len(self.api.events), 1)
    self.assertEqual(self.api.condition("n1")["lastTransitionTime"], degraded["lastTransitionTime"])
    self.lab.heal(RailId(1, 1))
    healed = self.expect("n1", "False")
    self.assertTrue(wait_until(lambda: len(self.api.events) == 2, PATIENCE_S, 0.1), self.api.events)
    self.assertEqual((self.api.events[1]["type"], self.api.events[1]["reason"]), ("Normal", "R2CCRailsWork"))
    self.assertGreater(healed["lastTransitionTime"], degraded["lastTransitionTime"])
    # Nobody hears n1: its last condition is not to be believed.
    self.cluster.kill_daemon(1)
    self.assertEqual(self.expect("n1", "Unknown")["reason"], "Unreachable")
    self.assertEqual(self.api.refused, [])
    self.assertIn("the condition of node n2 is not written", conditions.errors(), "Kubernetes does not know it")
    self.assertTrue(conditions.is_alive())

  def test_another_writers_condition_is_left_to_it(self) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    theirs = {"type": "R2CCRailDegraded", "status": "Unknown", "reason": "Theirs", "message": "", "lastHeartbeatTime": now,
              "lastTransitionTime": now}
    self.api.merge("n0", {"status": {"conditions": [theirs]}}, "node-problem-detector")
    conditions = self.start()
    self.expect("n1", "False")
    self.assertTrue(wait_until(lambda: "node-problem-detector" in conditions.errors(), PATIENCE_S, 0.1), conditions.errors())
    self.assertIn("the condition of node n0 is not written: another program writes it", conditions.errors())
    self.assertEqual(self.api.condition("n0"), theirs)

  def test_a_false_api_server_gets_no_token(self) -> None:
    other = self.folder / "other"
    other.mkdir()
    (other / "token").write_text("x", encoding="ascii")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kubernetes", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", other / "key", "-out", other / "ca.crt"], check=True, capture_output=True)
    conditions = self.start(other)
    self.assertTrue(wait_until(lambda: "does not prove that it is the API server" in conditions.errors(), PATIENCE_S, 0.1),
                    conditions.errors())
    self.assertEqual(self.api.condition("n0"), {})

  def test_a_refused_account_is_logged(self) -> None:
    (self.api.account / "token").write_text("of somebody else", encoding="ascii")
    conditions = self.start()
    self.assertTrue(wait_until(lambda: "status 401" in conditions.errors(), PATIENCE_S, 0.1), conditions.errors())
    self.assertTrue(conditions.is_alive())


if __name__ == "__main__":
  unittest.main()
