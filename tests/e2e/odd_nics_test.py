"""NICs beside the rails of the emulated cluster: a direct cable between two nodes, and one that negotiates its speed."""

import pathlib
import subprocess
import sys
import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase


class OddCluster(Cluster):
  """Daemons with one NIC more; `odd_nic` makes its line of the configuration."""

  odd_nic = staticmethod(lambda node: "")

  def config_text(self, node: int) -> str:
    return super().config_text(node) + self.odd_nic(node) + "\n"


class OddNics(NamespaceCase):

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2))
    self.processes = self.enterContext(Processes(self.folder))
    self.cluster = OddCluster(self.lab, built_binaries(), self.folder, self.processes)

  def run_on(self, node: int, *argv: str) -> None:
    subprocess.run(self.lab.command(node, argv), check=True, capture_output=True, timeout=20)

  def expect(self, nic: str, verdict: str, state: str) -> dict:
    result = [{}]

    def as_expected() -> bool:
      result[0] = self.cluster.ctl_json(0, "nic", "why", nic)
      return result[0]["verdict"] == verdict and result[0]["nic"]["state"] == state

    self.assertTrue(wait_until(as_expected, PATIENCE_S, 0.1), f"{nic}: wanted '{verdict}' and {state}, it is {result[0]}")
    return result[0]

  def test_a_direct_cable(self):
    ends = [f"ip link add cable0 netns {self.lab.namespace(0)} type veth peer name cable0 netns {self.lab.namespace(1)}".split()]
    subprocess.run(ends[0], check=True, capture_output=True, timeout=20)
    for node in (0, 1):
      self.run_on(node, "ip", "addr", "add", f"10.30.0.{node + 1}/24", "dev", "cable0")
      self.run_on(node, "ip", "link", "set", "cable0", "up")
    self.cluster.odd_nic = lambda node: f'nics {{ name: "cable0" cable_to: "n{1 - node}/cable0" }}'
    self.cluster.start_daemons()
    answered = lambda: any(pair["nic"] == "cable0" and pair["state"] == "up"
                           for pair in self.cluster.ctl_json(0, "path", "probe", "n0", "n1").get("pairs", []))
    self.assertTrue(wait_until(answered, PATIENCE_S, 0.1))

    with self.subTest("cut, so that both ends lose their link"):
      self.run_on(1, "ip", "link", "set", "cable0", "down")
      for nic in ("n0/cable0", "n1/cable0"):
        self.assertIn("both ends lost their link", self.expect(nic, "cable", "FAILED")["verdict_text"])
      self.run_on(1, "ip", "link", "set", "cable0", "up")
      for nic in ("n0/cable0", "n1/cable0"):
        self.expect(nic, "none", "HEALTHY")
      self.assertTrue(wait_until(answered, PATIENCE_S, 0.1))

    with self.subTest("silent, with both links up"):
      # A bucket smaller than any packet lets none through, and tells nobody.
      nothing = ("tc", "qdisc", "replace", "dev", "cable0", "root", "tbf", "rate", "1kbit", "burst", "20", "limit", "20")
      self.run_on(0, *nothing)
      for nic in ("n0/cable0", "n1/cable0"):
        answer = self.expect(nic, "cable", "FAILED")
        self.assertTrue(answer["nic"]["link_up"])
        self.assertTrue(answer["verdict_text"].startswith("cable between "), answer["verdict_text"])
      self.run_on(0, "tc", "qdisc", "del", "dev", "cable0", "root")
      for nic in ("n0/cable0", "n1/cable0"):
        self.expect(nic, "none", "HEALTHY")

  def test_a_lower_negotiated_speed(self):
    argv = [sys.executable, str(pathlib.Path(__file__).with_name("tap.py")), "tap0", "10.30.0.1/24"]
    tap = subprocess.Popen(self.lab.command(0, argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    self.addCleanup(tap.communicate, timeout=20)  # it ends with its standard input

    def negotiate(mbits: int) -> None:
      print(mbits, file=tap.stdin, flush=True)
      self.assertEqual(tap.stdout.readline(), "ok\n")

    self.assertEqual(tap.stdout.readline(), "ok\n")
    negotiate(1000)
    self.cluster.odd_nic = lambda node: 'nics { name: "tap0" rate_bits_per_s: 1000000000 }' if node == 0 else ""
    self.cluster.start_daemons()
    self.expect("n0/tap0", "none", "HEALTHY")
    negotiate(100)
    answer = self.expect("n0/tap0", "measured", "DEGRADED")
    self.assertEqual(answer["nic"]["reason"], "link runs at 0.1 Gbit/s instead of 1 Gbit/s")
    # Of the best NIC of its node, a rail of 500 Mbit/s.
    self.assertEqual(answer["planned"]["weight_permille"], 200)
    negotiate(1000)
    self.assertEqual(self.expect("n0/tap0", "none", "HEALTHY")["planned"]["weight_permille"], 1000)
