"""A run directory that is swept under running daemons (F6; docs/diagnose.md)."""

import pathlib
import tempfile
import unittest

from deploy.drill.rig import namespaces
from deploy.drill.rig.binaries import built_binaries
from deploy.drill.rig.cluster import Cluster, JobOptions
from deploy.drill.rig.namespaces import NamespaceLab
from deploy.drill.rig.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, keep_test_logs

SOCKETS = ("attach.sock", "r2ccd.sock")


class RunDir(unittest.TestCase):

  @classmethod
  def setUpClass(cls) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")
    namespaces.sweep()

  def test_deleted_sockets_are_made_again(self):
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-e2e-", dir="/tmp")))
    self.addCleanup(keep_test_logs, folder, self.id())
    lab = self.enterContext(NamespaceLab(nodes=2, rails=2, rate="500mbit"))
    processes = self.enterContext(Processes(folder))
    cluster = Cluster(lab, built_binaries(), folder, processes)
    cluster.start_daemons()
    running = cluster.start_job("running", JobOptions(size="1M", seconds_max=600))
    self.assertTrue(wait_until(lambda: cluster.attached_processes(1) == 1, PATIENCE_S, 0.1))
    run_dir = cluster.run_dir(1)
    swept = [run_dir / name for name in (*SOCKETS, "r2ccd.lock")]
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
    warnings = [line for path in folder.glob("r2ccd-n1-*") for line in path.read_text(errors="replace").splitlines()
                if "were deleted under r2ccd" in line]
    self.assertEqual(len(warnings), 1, warnings)
