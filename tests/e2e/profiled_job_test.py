"""Which collective of which rank a lost rail held up, as the profiler of each process names it to the plugin and the daemon."""

from testing.lab.binaries import built_file
from testing.lab.lab import RailId
from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase

CUTS_MAX = 5
NAMED_WITHIN_S = 10


class ProfiledJob(ClusterCase):
  flags = ("--profiler", str(built_file("nccl/profiler/libnccl-profiler-r2cc.so")))
  # The job's own silence is found after the daemon's; a cut is found at once.
  environment = {"R2CC_LOG": "info"}

  def faults(self, nic: str) -> list[dict]:
    jobs = self.cluster.ctl_json(0, "job", "report")["jobs"]
    return [fault for job in jobs for fault in job["faults"] if fault["nic"] == nic]

  def iterations(self) -> int:
    self.job.follower.poll()
    return sum(1 for row in self.job.follower.rows if row.kind == "iteration" and row.rank == 0)

  def cut_in_an_operation(self, rail: RailId, named) -> None:
    """The rail is lost. One that is lost between two operations holds up none of them: it is repaired and lost again."""
    for _ in range(CUTS_MAX):
      self.lab.cut(rail)
      if wait_until(lambda: len(named()) > 0, NAMED_WITHIN_S, 0.2):
        return
      self.lab.heal(rail)
      self.expect_iterations(3)
    self.fail(self.cluster.ctl(0, "job", "report"))

  def test_a_lost_rail_names_the_collective_that_waited(self):
    communicators = set()
    for number in range(2):
      named = lambda: [held for fault in self.faults(f"rail{number}") for held in fault["held"]]
      before = self.iterations()
      self.cut_in_an_operation(RailId(3, number), named)
      self.expect_iterations(3)
      after = self.iterations()
      for held in named():
        self.assertEqual((held["function"], held["ranks"], held["communicator_name"]), ("AllReduce", 4, "r2cc-perf"), held)
        self.assertEqual(held["node"], f"n{held['rank']}", "one rank a node")
        # Warm-up iterations count, and rank 0's rows come late.
        self.assertTrue(before <= held["number"] <= after + 10, (before, held, after))
        self.assertGreater(int(held["held_ns"]), 0)
        communicators.add(held["communicator"])
    self.assertEqual(len(communicators), 1, "all ranks name one communicator")
    self.assertIn("AllReduce", self.cluster.ctl(0, "job", "report"))
    held_events = lambda: [event for node in range(4) for event in self.cluster.events(node) if event["kind"] == "operation-held"]
    self.assertTrue(wait_until(lambda: len(held_events()) > 0, PATIENCE_S, 0.2))
    self.assertTrue(all("held up AllReduce" in event["message"] for event in held_events()), held_events())
    for node in range(4):
      nics = [event["nic"] for event in self.cluster.events(node) if event["kind"] == "operation-held"]
      self.assertEqual(len(nics), len(set(nics)), "one event a fault")
    self.expect_right_end()
