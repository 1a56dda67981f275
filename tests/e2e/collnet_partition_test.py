import pathlib
import tempfile
import unittest

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, expect_iterations, keep_test_logs

# Rail K reaches rail K alone. Nodes 0 and 1 have no rail in common then; each reaches nodes 2 and 3.
CUT = (RailId(0, 1), RailId(1, 0))
DEADLINE_MS = 5000


class CollNetPartition(unittest.TestCase):
  """Two members of a CollNet group without a path to each other: avoided by a group that begins so, an error of all where it cannot be."""

  def setUp(self) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      self.skipTest(f"needs root: {reason}")
    namespaces.sweep()
    self.lab = self.enterContext(NamespaceLab(nodes=4, rails=2))
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-e2e-", dir="/tmp")))
    self.addCleanup(keep_test_logs, folder, self.id())
    self.cluster = Cluster(self.lab, built_binaries(), folder, self.enterContext(Processes(folder)), daemons=False)

  def start(self, name: str) -> Job:
    environment = {"R2CC_LOG": "info", "R2CC_DEADLINE_MS": str(DEADLINE_MS)}
    flags = ("--collnet", "--debug", "-d", "float", "--random", "29", "-w", "0")
    return self.cluster.start_job(name, JobOptions(size="2500K", seconds_max=600, environment=environment, flags=flags))

  def hash_at_end(self, job: Job) -> str:
    job.ask_to_stop()
    self.assertTrue(job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(job.failures(), [])
    report = job.report()
    self.assertEqual((report["wrong_elements"], report["late_writes"], report["pass"]), (0, 0, True))
    return report["rows"][0]["hash"]

  def test_a_group_that_begins_so_works_and_has_the_same_bits(self):
    sound = self.start("sound")
    expect_iterations(self, sound, 4)
    want = self.hash_at_end(sound)
    for rail in CUT:
      self.lab.cut(rail)
    job = self.start("partition")
    expect_iterations(self, job, 4)
    self.assertIn("R2CC: CollNet: from operation 0 on members own 0.0, 0.0, 50.0, 50.0 %", job.ranks[1].errors())
    self.assertIn("R2CC: CollNet: no rail leads to member 1", job.ranks[0].errors())
    for rail in CUT:
      self.lab.heal(rail)
    again = "on members own 25.0, 25.0, 25.0, 25.0 %"
    self.assertTrue(wait_until(lambda: again in job.ranks[0].errors(), PATIENCE_S, 0.1), "the path is not used again")
    expect_iterations(self, job, 4)
    self.assertEqual(self.hash_at_end(job), want)

  def test_in_mid_operation_it_is_one_clear_error_of_all(self):
    job = self.start("lost")
    expect_iterations(self, job, 4)
    for rail in CUT:
      self.lab.cut(rail)
    self.assertTrue(job.wait(DEADLINE_MS / 1000 + PATIENCE_S), "the job hangs")
    for rank in job.ranks:
      self.assertIn(" has lost member ", rank.errors())
      self.assertIn(" gave up on ", rank.errors())

  def test_a_group_of_which_nobody_reaches_all_is_one_clear_error_of_all(self):
    for rail in CUT + (RailId(2, 1), RailId(3, 0)):
      self.lab.cut(rail)
    job = self.start("nobody")
    self.assertTrue(job.wait(DEADLINE_MS / 1000 + PATIENCE_S), "the job hangs")
    # Who is the first to give up tells the others that it leaves.
    errors = [rank.errors() for rank in job.ranks]
    self.assertTrue(any(f" of 4 has no path to all others after {DEADLINE_MS} ms (R2CC_DEADLINE_MS): no rail leads to members " in text
                        for text in errors), errors)
    for text in errors:
      self.assertRegex(text, "R2CC: CollNet: member . (of 4 has no path to all others|has lost member)")
