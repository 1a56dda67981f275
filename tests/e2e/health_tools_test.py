"""What health tools of Kubernetes hear of a node whose rails fail: conditions of node-problem-detector, and events of NVSentinel."""

import json
import os
import pathlib
import subprocess
import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

_RULES = pathlib.Path(__file__).resolve().parents[2] / "deploy/health/r2cc-npd.json"


class HealthTools(NamespaceCase):
  """Two nodes of two rails; n0 is looked at."""

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2, rate=None))
    self.processes = self.enterContext(Processes(self.folder))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.processes)
    self.cluster.start_daemons()

  def conditions(self) -> dict[str, tuple[int, str]]:
    """Exit code and output of each condition's rule, run and cut as the detector does."""
    monitor = json.loads(_RULES.read_text(encoding="utf-8"))
    found = {}
    for rule in monitor["rules"]:
      argv = [str(self.cluster.binaries.ctl), *rule["args"], "--run_dir", str(self.cluster.run_dir(0))]
      done = subprocess.run(argv, capture_output=True, text=True, timeout=float(rule["timeout"].rstrip("s")), check=False)
      line = done.stdout.strip()
      self.assertEqual(line, line[:monitor["pluginConfig"]["max_output_length"]], "nothing is lost by the cut")
      found[rule["condition"]] = (done.returncode, line)
    return found

  def expect_conditions(self, degraded: int, no_rail: int) -> dict[str, tuple[int, str]]:
    codes = lambda: tuple(self.conditions()[name][0] for name in ("R2CCRailDegraded", "R2CCNoRail"))
    self.assertTrue(wait_until(lambda: codes() == (degraded, no_rail), PATIENCE_S, 0.2), self.conditions())
    return self.conditions()

  def test_conditions_of_the_problem_detector(self):
    self.expect_conditions(0, 0)
    self.lab.cut(RailId(0, 1))
    found = self.expect_conditions(1, 0)
    self.assertEqual(found["R2CCRailDegraded"][1], "rail1 FAILED: link down; 1 of 2 rails usable")
    self.lab.cut(RailId(0, 0))
    self.expect_conditions(1, 1)
    self.lab.heal(RailId(0, 0))
    self.lab.heal(RailId(0, 1))
    self.expect_conditions(0, 0)
    self.cluster.kill_daemon(0)
    self.expect_conditions(2, 2)

  def test_events_of_nvsentinel(self):
    socket = self.folder / "nvsentinel.sock"
    argv = [str(self.cluster.binaries.ctl), "health-events", "--nvsentinel", str(socket), "--node", "gpu-7", "--run_dir",
            str(self.cluster.run_dir(0))]
    reporter = self.processes.start("reporter", argv)
    self.assertTrue(wait_until(lambda: "NVSentinel did not accept health events" in reporter.errors(), PATIENCE_S, 0.1))
    sentinel = self.processes.start("sentinel", [str(pathlib.Path(os.environ["SENTINEL"]).resolve()), str(socket)])
    logged = lambda: sentinel.output().splitlines()

    def expect(part: str) -> str:
      self.assertTrue(wait_until(lambda: any(part in line for line in logged()), PATIENCE_S, 0.1), (part, logged(), reporter.errors()))
      return next(line for line in logged() if part in line)

    # A start ends what a former reporter left open.
    for part in ("gpu-7 R2CCNic rail0 healthy", "gpu-7 R2CCNic rail1 healthy", "gpu-7 R2CCNoRail gpu-7 healthy"):
      expect(part)
    before = len(logged())
    self.lab.cut(RailId(0, 1))
    self.assertEqual(expect(" ill "), "gpu-7 R2CCNic rail1 ill not-fatal STORE_ONLY rail1 FAILED: link down")
    self.assertEqual(len(logged()), before + 1, "a masked fault is one event")
    self.lab.cut(RailId(0, 0))
    expect("gpu-7 R2CCNoRail gpu-7 ill fatal EXECUTE_REMEDIATION no NIC carries jobs: ")
    self.lab.heal(RailId(0, 0))
    self.lab.heal(RailId(0, 1))
    healthy = lambda part: sum(1 for line in logged() if part in line)
    for part in ("R2CCNic rail0 healthy", "R2CCNic rail1 healthy", "R2CCNoRail gpu-7 healthy"):
      self.assertTrue(wait_until(lambda part=part: healthy(part) == 2, PATIENCE_S, 0.1), (part, logged()))
