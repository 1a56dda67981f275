"""A test case with an emulated cluster in namespaces and a job that runs on it."""

import os
import pathlib
import tempfile
import time
import unittest

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions, keep_logs
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until

# Generous: these waits end as soon as what they wait for is there.
PATIENCE_S = 60


def keep_test_logs(folder: pathlib.Path, name: str) -> None:
  """Into the test's outputs.zip, for whoever asks why it failed."""
  outputs = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
  if outputs:
    keep_logs(folder, pathlib.Path(outputs) / name.rpartition(".")[2])


def expect_iterations(case: unittest.TestCase, job: Job, count: int) -> None:
  """`job` ends `count` more iterations."""
  iterations = lambda: sum(1 for row in job.follower.rows if row.kind == "iteration" and row.rank == 0)
  job.follower.poll()
  before = iterations()

  def went_on() -> bool:
    job.follower.poll()
    dead = job.dead_rank()
    if dead is not None:
      case.fail(f"rank {dead} ended with {job.ranks[dead].returncode}: {job.ranks[dead].last_lines()}")
    return iterations() >= before + count

  case.assertTrue(wait_until(went_on, PATIENCE_S, 0.02), f"fewer than {count} iterations in {PATIENCE_S} s")


class NamespaceCase(unittest.TestCase):
  """Skipped without namespaces; a folder for the logs of each test."""

  @classmethod
  def setUpClass(cls) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")
    namespaces.sweep()

  def setUp(self) -> None:
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-e2e-", dir="/tmp")))
    self.addCleanup(keep_test_logs, self.folder, self.id())


class ClusterCase(NamespaceCase):
  """4 nodes of 4 rails with one r2ccd each; `environment` and `flags` are the job's."""

  environment: dict[str, str] = {}
  flags: tuple[str, ...] = ()
  rate = "500mbit"
  http_everywhere = False  # the daemons' metrics are at their management addresses

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(rate=self.rate))
    self.processes = self.enterContext(Processes(self.folder))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.processes, http_everywhere=self.http_everywhere)
    self.cluster.start_daemons()
    self.job: Job = self.cluster.start_job("job", JobOptions(size="16M", seconds_max=600, environment=self.environment, flags=self.flags))
    self.expect_iterations(3)
    for node in range(self.lab.nodes):
      self.expect_attached(node)

  def expect_iterations(self, count: int) -> None:
    expect_iterations(self, self.job, count)

  def expect_attached(self, node: int) -> None:
    """The rank of `node` is attached to its daemon, perhaps again."""
    self.assertTrue(wait_until(lambda: self.cluster.attached_processes(node) == 1, PATIENCE_S, 0.1), f"the job on n{node} is not attached")

  def expect_right_end(self) -> None:
    """The job ends when it is asked to, and every element of it was right."""
    self.job.ask_to_stop()
    self.assertTrue(self.job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(self.job.failures(), [])
    report = self.job.report()
    self.assertEqual((report["wrong_elements"], report["late_writes"], report["pass"]), (0, 0, True))

  def shares_sent(self, node: int, seconds: float = 2.0) -> dict[str, float]:
    """Which part of the bytes that `node` sends in the next `seconds` each rail carries, by interface counters."""
    return self._shares(node, seconds, received=False)

  def shares_received(self, node: int, seconds: float = 2.0) -> dict[str, float]:
    return self._shares(node, seconds, received=True)

  def _shares(self, node: int, seconds: float, received: bool) -> dict[str, float]:
    before = self.lab.counters(node)
    time.sleep(seconds)
    after = self.lab.counters(node)
    size = lambda counters: counters.received_bytes if received else counters.sent_bytes
    moved = {rail: size(after[rail]) - size(before[rail]) for rail in after}
    total = sum(moved.values())
    self.assertGreater(total, 0, f"n{node} moved nothing")
    return {rail: size / total for rail, size in moved.items()}

  def failover_events(self) -> list[dict]:
    return [event for node in self.cluster.living_daemons() for event in self.cluster.events(node)
            if event["kind"] == "failover" and event["node"] == f"n{node}"]
