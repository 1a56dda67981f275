import contextlib
import pathlib
import tempfile
import time
import unittest
from typing import Callable

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, expect_iterations, keep_test_logs

# Values whose sums are rounded: the order of additions shows in the last bits.
TYPES = ("float", "half", "bfloat16")
SEED = "29"
NEW_PLAN = "R2CC: CollNet: from operation "
LOST_AT_START = RailId(0, 3)
BETWEEN_CUTS_S = 0.01


class CollNetBits(unittest.TestCase):
  """The degraded AllReduce of each type gives the same bits whatever breaks, whatever plan its members follow, with daemons and without."""

  def setUp(self) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      self.skipTest(f"needs root: {reason}")
    namespaces.sweep()
    self.lab = self.enterContext(NamespaceLab())

  def hashes_of(self, daemons: bool) -> dict[str, str]:
    """By type, of all iterations of a job that sees each fault."""
    with contextlib.ExitStack() as stack:
      folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="r2cc-e2e-", dir="/tmp")))
      stack.callback(keep_test_logs, folder, f"{self.id()}-{'daemons' if daemons else 'alone'}")
      processes = stack.enter_context(Processes(folder))
      cluster = Cluster(self.lab, built_binaries(), folder, processes, daemons=daemons)
      if daemons:
        cluster.start_daemons()
      return {name: self.hash_of(cluster, name) for name in TYPES}

  def hash_of(self, cluster: Cluster, type_name: str) -> str:
    self.lab.cut(LOST_AT_START)
    flags = ("--collnet", "--debug", "-d", type_name, "--random", SEED)
    options = JobOptions(size="2500K", seconds_max=600, environment={"R2CC_LOG": "info"}, flags=flags)
    job = cluster.start_job(f"bits-{type_name}", options)
    expect_iterations(self, job, 4)
    self.assertIn(f"{NEW_PLAN}0 on members own 10.0, 30.0, 30.0, 30.0 %", job.ranks[3].errors(), "the job begins with a rail lost")
    self.change(job, self.lab.heal, LOST_AT_START)
    self.change(job, self.lab.cut, RailId(0, 1))
    self.change(job, self.lab.heal, RailId(0, 1))
    self.silence_and_heal(job, RailId(1, 2))
    self.change(job, self.lab.cut, RailId(0, 0), RailId(2, 3))
    self.change(job, self.lab.heal, RailId(0, 0), RailId(2, 3))
    job.ask_to_stop()
    self.assertTrue(job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(job.failures(), [])
    report = job.report()
    self.assertEqual((report["wrong_elements"], report["late_writes"], report["pass"], report["type"]), (0, 0, True, type_name))
    return report["rows"][0]["hash"]

  def change(self, job: Job, how: Callable[[RailId], int], *rails: RailId) -> None:
    """The members follow another plan afterwards."""
    for number, rail in enumerate(rails):
      time.sleep(BETWEEN_CUTS_S if number > 0 else 0)
      before = self.plans(job)
      how(rail)
    self.assertTrue(wait_until(lambda: self.plans(job) > before, PATIENCE_S, 0.02), f"no new plan after {how.__name__} of {rails}")
    expect_iterations(self, job, 2)

  def silence_and_heal(self, job: Job, rail: RailId) -> None:
    """Its link stays up: that it reaches nobody makes it a lost one."""
    self.change(job, self.lab.blackhole, rail)
    self.change(job, self.lab.unblackhole, rail)

  @staticmethod
  def plans(job: Job) -> int:
    """That member 0 has stamped."""
    return job.ranks[0].errors().count(NEW_PLAN)

  def test_the_bits_are_the_same(self):
    alone = self.hashes_of(daemons=False)
    self.assertEqual(len(set(alone.values())), len(TYPES), alone)
    self.assertEqual(self.hashes_of(daemons=True), alone)
