"""By which way the AllReduces of a job's communicators go: from a process to its daemon's lists, also to a daemon that starts later."""

import os
import pathlib

from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase


class Ways(ClusterCase):

  environment = {"LD_PRELOAD": str(pathlib.Path(os.environ["REPORTS_WAYS"]).absolute())}

  def ways(self, node: int) -> list[tuple[int, str, str]]:
    jobs = self.cluster.ctl_json(node, "jobs").get("jobs", [])
    return [(way["communicator"], way["way"], way["call"]) for job in jobs for way in job.get("ways", [])]

  def test_each_daemon_knows_the_ways_of_its_processes(self):
    wanted = [(3, "nccl", "51200"), (4, "collnet", "768")]
    for node in range(self.lab.nodes):
      self.assertTrue(wait_until(lambda node=node: self.ways(node) == wanted, PATIENCE_S, 0.1), f"n{node}: {self.ways(node)}")
    text = self.cluster.ctl(0, "jobs")
    self.assertIn("communicator 4: CollNet from 64 MiB on, expected 0.88 of the usual time, since call 768", text)
    self.assertNotIn("communicator 3:", text)
    # All nodes' together.
    report = self.cluster.ctl(1, "job", "report")
    self.assertIn("communicator 3: NCCL's own choice", report)
    self.assertIn("n3, communicator 4: CollNet", report)
    # A daemon that starts later learns them, too.
    self.cluster.kill_daemon(2)
    self.cluster.start_daemon(2)
    self.cluster.wait_ready(2)
    self.expect_attached(2)
    self.assertTrue(wait_until(lambda: self.ways(2) == wanted, PATIENCE_S, 0.1), f"n2: {self.ways(2)}")
    self.expect_right_end()
