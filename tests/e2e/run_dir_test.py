"""A run directory that is swept under running daemons (docs/operate/diagnose.md)."""

import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, JobOptions
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

SOCKETS = ("attach.sock", "r2ccd.sock")


class RunDir(NamespaceCase):

  def test_deleted_sockets_are_made_again(self):
    lab = self.enterContext(NamespaceLab(nodes=2, rails=2, rate="500mbit"))
    processes = self.enterContext(Processes(self.folder))
    cluster = Cluster(lab, built_binaries(), self.folder, processes)
    cluster.start_daemons()
    running = cluster.start_job("running", JobOptions(size="1M", seconds_max=600))
    self.assertTrue(wait_until(lambda: cluster.attached_processes(1) == 1, PATIENCE_S, 0.1))
    run_dir = cluster.run_dir(1)
    control_dir = run_dir.with_name(run_dir.name + "-control")
    swept = [*(run_dir / name for name in SOCKETS), *(control_dir / name for name in ("r2ccd.sock", "r2ccd.lock"))]
    for path in swept:
      path.unlink()
    self.assertTrue(wait_until(lambda: all(path.exists() for path in swept), PATIENCE_S, 0.1), list(run_dir.iterdir()))
    # The job that was attached is still, a new one comes in, and operators are answered.
    self.assertTrue(wait_until(lambda: cluster.attached_processes(1) == 1, PATIENCE_S, 0.1))
    new = cluster.start_job("new", JobOptions(size="1M", seconds_max=600))
    self.assertTrue(wait_until(lambda: cluster.attached_processes(1) == 2, PATIENCE_S, 0.1))
    for job in (running, new):
      job.ask_to_stop()
      self.assertTrue(job.wait(PATIENCE_S))
      self.assertEqual(job.failures(), [])
    warnings = [line for path in self.folder.glob("r2ccd-n1-*") for line in path.read_text(errors="replace").splitlines()
                if "were deleted under r2ccd" in line]
    self.assertEqual(len(warnings), 1, warnings)
