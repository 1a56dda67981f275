"""Jobs that hang are named within 12 s, with what they wait for; jobs that are slow, busy or idle are not."""

import os
import time
import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions
from testing.lab.lab import RailId, monotonic_ns
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase, expect_iterations

NAMED_WITHIN_S = 12
# The plugin finds no silence of its own in the time of a test.
BLIND = {"R2CC_SILENCE_MS": "60000", "R2CC_DEADLINE_MS": "120000"}
# By hand: R2CC_QUIET_S=1800.
QUIET_S = float(os.environ.get("R2CC_QUIET_S", "30"))


class Hangs(NamespaceCase):
  """Two nodes of two rails with one r2ccd and one rank each."""

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2, rate="500mbit"))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.enterContext(Processes(self.folder)))
    self.cluster.start_daemons()

  def start(self, size: str = "4M", **environment: str) -> Job:
    self.job = self.cluster.start_job("job", JobOptions(size=size, seconds_max=3600, environment=environment))
    expect_iterations(self, self.job, 3)
    for node in range(2):
      self.assertTrue(wait_until(lambda node=node: self.cluster.attached_processes(node) == 1, PATIENCE_S, 0.1))
    # Each plugin has reported since, so that what follows is known to follow movement.
    time.sleep(3)
    return self.job

  def events_of(self, node: int, kind: str) -> list[dict]:
    return [event for event in self.cluster.events(node) if event["kind"] == kind and event["node"] == f"n{node}"]

  def expect_named(self, node: int, fault_ns: int) -> str:
    """The event's line."""
    self.assertTrue(wait_until(lambda: self.events_of(node, "job-hang"), 2 * NAMED_WITHIN_S, 0.1), f"n{node} names no hang")
    events = self.events_of(node, "job-hang")
    took_s = (int(events[0]["monotonic_ns"]) - fault_ns) / 1e9
    print(f"{self.id().rpartition('.')[2]}: n{node} after {took_s:.1f} s: {events[0]['message']}")
    self.assertTrue(8 < took_s < NAMED_WITHIN_S, events)
    self.assertEqual(len(events), 1, events)
    jobs = self.cluster.ctl_json(node, "jobs", "--bad")["jobs"]
    self.assertEqual([job["waiting"]["hangs"] for job in jobs], [True], jobs)
    self.assertIn(jobs[0]["waiting"]["text"], self.cluster.ctl(node, "jobs"))
    self.assertIn("makes no progress", self.cluster.ctl(node, "status"))
    return events[0]["message"]

  def expect_each_to_wait(self, fault_ns: int, why: str) -> None:
    """Each rank is named with its peer, and one at least with the reason: the other may wait for what that one would send."""
    messages = [self.expect_named(node, fault_ns) for node in range(2)]
    for node, message in enumerate(messages):
      self.assertIn(f"it waits for n{1 - node}", message)
    self.assertTrue(any(why in message for message in messages), messages)

  def expect_progress(self, node: int) -> None:
    self.assertTrue(wait_until(lambda: self.events_of(node, "job-progress"), PATIENCE_S, 0.1), f"n{node} does not see the end of the hang")
    self.assertTrue(all("waiting" not in job for job in self.cluster.ctl_json(node, "jobs")["jobs"]))
    self.assertNotIn("makes no progress", self.cluster.ctl(node, "status"))

  def expect_right_end(self) -> None:
    self.job.ask_to_stop()
    self.assertTrue(self.job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(self.job.failures(), [])

  def test_a_stopped_rank(self) -> None:
    self.start()
    fault_ns = monotonic_ns()
    self.job.ranks[1].pause()
    self.assertIn("n1: the process there does not answer: it is stopped or very busy", self.expect_named(0, fault_ns))
    self.assertIn("it no longer reports", self.expect_named(1, fault_ns))
    self.job.ranks[1].resume()
    self.expect_progress(0)
    self.expect_progress(1)
    self.expect_right_end()

  def test_a_swallowed_rail_with_detection_off(self) -> None:
    self.start(**BLIND)
    # TCP alone: r2ccd's probes pass, so that nothing but the job knows of it.
    fault_ns = self.lab.lose(RailId(1, 1), "meta l4proto tcp")
    self.lab.lose(RailId(0, 1), "meta l4proto tcp")
    self.expect_each_to_wait(fault_ns, "over rail1: what was sent there is not acknowledged")
    self.lab.lose_nothing(RailId(1, 1))
    self.lab.lose_nothing(RailId(0, 1))
    self.expect_progress(0)
    self.expect_right_end()

  def test_a_peers_silence(self) -> None:
    self.start(R2CC_DEADLINE_MS="60000")
    fault_ns = monotonic_ns()
    self.lab.silence_management(1, True)
    for rail in range(2):
      self.lab.blackhole(RailId(1, rail))
    self.expect_each_to_wait(fault_ns, "no rail reaches it")
    self.lab.silence_management(1, False)
    for rail in range(2):
      self.lab.unblackhole(RailId(1, rail))
    self.expect_progress(0)
    self.expect_right_end()

  def expect_quiet(self) -> None:
    end = time.monotonic() + QUIET_S
    while time.monotonic() < end:
      for node in range(2):
        self.assertEqual(self.events_of(node, "job-hang"), [])
      time.sleep(1)
    self.expect_right_end()

  def test_a_healthy_job_is_not_named(self) -> None:
    self.start()
    self.expect_quiet()

  def test_a_slow_job_is_not_named(self) -> None:
    """One message takes half a minute."""
    self.start(size="32M")
    for node in range(2):
      for rail in range(2):
        self.lab.reshape(RailId(node, rail), "4mbit")
    self.expect_quiet()


if __name__ == "__main__":
  unittest.main()
