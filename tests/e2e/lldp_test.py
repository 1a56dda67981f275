"""The switch and its port behind a NIC, from a real lldpd on the node and another one on the switch."""

import json
import pathlib
import shutil
import subprocess
import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes, clean_environment, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

RAIL = RailId(0, 0)


class Lldp(NamespaceCase):
  """Two nodes of two rails. lldpd runs for one rail, in a /run of its own."""

  def setUp(self) -> None:
    super().setUp()
    if shutil.which("lldpd") is None:
      raise unittest.SkipTest("needs lldpd: it is not installed")
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2, rate="500mbit"))
    self.processes = self.enterContext(Processes(self.folder))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.processes)
    self.cluster.start_daemons()

  def start_lldpd(self, namespace: str, host: str, interface: str) -> ManagedProcess:
    settings = pathlib.Path(self.folder, f"{host}.conf")
    settings.write_text("configure lldp tx-interval 1\n", encoding="ascii")
    script = f"mount -t tmpfs tmpfs /run && mkdir /run/lldpd && hostname {host} && exec lldpd -d -I {interface} -O {settings}"
    return self.processes.start(f"lldpd-{host}", ["ip", "netns", "exec", namespace, "unshare", "--mount", "--uts", "sh", "-c", script])

  def ctl(self, lldpd: ManagedProcess, *arguments: str) -> str:
    """r2ccctl where `lldpd` runs."""
    done = subprocess.run(["nsenter", "--mount", "--net", "--target", str(lldpd.pid), self.cluster.binaries.ctl, "--run_dir",
                           self.cluster.run_dir(0), *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                          env=clean_environment({}))
    self.assertEqual(done.returncode, 0, done.stderr)
    return done.stdout

  def part(self, lldpd: ManagedProcess, nic: str) -> dict:
    return json.loads(self.ctl(lldpd, "nic", "why", nic, "-o", "json"))["inventory"]

  def test_the_switch_port_is_where_lldpd_has_it(self) -> None:
    port = self.lab.switch_port(RAIL)
    self.start_lldpd(self.lab.fabric_namespace, "leaf3", port)
    lldpd = self.start_lldpd(self.lab.namespace(0), "n0", "rail0")

    def seen() -> tuple[str | None, str | None]:
      part = self.part(lldpd, "n0/rail0")
      return part.get("switch_name"), part.get("switch_port")

    self.assertTrue(wait_until(lambda: seen() == ("leaf3", port), PATIENCE_S, 0.5), f"{seen()}; {lldpd.last_lines()}")
    self.assertFalse([line for line in self.part(lldpd, "n0/rail0")["missing"] if line.startswith("switch port")])
    self.assertIn(f"at leaf3 port {port}", self.ctl(lldpd, "nic", "why", "n0/rail0"))
    self.assertRegex(self.ctl(lldpd, "nic", "list", "n0", "-o", "wide"), rf"n0/rail0 .* leaf3 +{port}")
    # Nobody speaks LLDP at the other one, and of another node this machine's lldpd knows nothing.
    for nic in ("n0/rail1", "n1/rail0"):
      part = self.part(lldpd, nic)
      self.assertEqual(part.get("switch_port", ""), "", nic)
      self.assertTrue([line for line in part["missing"] if line.startswith("switch port")], part)
