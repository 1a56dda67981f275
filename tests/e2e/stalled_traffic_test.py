"""A connection that is swallowed under each kind of traffic, and what the daemons of the cluster say of it."""

import time
import unittest

from testing.lab.lab import RailId
from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S
from tests.e2e.stalled_case import BUSY_MS, LARGE, STALL_MOST_MS, StalledCase

# A fault is on all pages within a second; the rest is for a machine that does other work.
KNOWN_S = 1 + 4


class StalledTraffic(StalledCase):

  def expect_each_fault_masked(self, usual_ms: float = 0) -> None:
    """A swallowed connection in one direction, in the other, and large packets; the rail is used again after each."""
    most_ms = STALL_MOST_MS + BUSY_MS + usual_ms
    for rail, fault in enumerate((lambda: self.swallow_busiest(0),
                                  lambda: self.lab.lose(RailId(1, 1), f"tcp dport {self.lab.connections(RailId(1, 1))[0].local_port}"),
                                  lambda: self.lab.lose(RailId(0, 2), LARGE))):
      with self.subTest(rail=rail):
        node = 1 if rail == 1 else 0
        self.expect_stall_within(fault(), most_ms)
        self.lab.lose_nothing(RailId(node, rail))
        self.expect_back(RailId(1, rail))
    self.expect_right_end()

  def test_alltoall(self):
    self.start(collective="alltoall")
    self.expect_each_fault_masked()

  def test_stream_of_messages(self):
    self.start(size="256K", collective="sendrecv")
    self.expect_each_fault_masked()

  def test_stream_of_small_messages(self):
    """Large packets do not occur: one connection in each direction."""
    self.start("-m", "100", size="8K", collective="sendrecv")
    for rail in range(2):
      fault_ns = self.swallow_busiest(rail)
      self.expect_stall_within(fault_ns)
      self.lab.lose_nothing(RailId(0, rail))
    self.expect_right_end()

  def test_collnet(self):
    self.start("--collnet")
    self.expect_each_fault_masked(usual_ms=100)


class StalledRailsOfACluster(StalledCase):
  """With r2ccd on both nodes."""

  daemons = True

  def setUp(self) -> None:
    super().setUp()
    self.cluster.start_daemons()

  def reason(self, node: int, rail: RailId) -> str:
    nic = self.cluster.ctl_json(node, "nic", "why", f"n{rail.node}/rail{rail.rail}")["nic"]
    return f"{nic['state']}: {nic.get('reason', '')}"

  def test_every_daemon_knows_why(self):
    self.start()
    self.assertTrue(wait_until(lambda: self.cluster.attached_processes(0) == self.cluster.attached_processes(1) == 1, PATIENCE_S, 0.1))
    fault_ns = self.swallow_busiest(0)
    since = time.monotonic()
    # The sender's own NIC is in doubt at both daemons, with what was lost.
    for node in range(2):
      known = lambda: "carries nothing" in self.reason(node, RailId(0, 0)) + self.reason(node, RailId(1, 0))
      self.assertTrue(wait_until(known, KNOWN_S, 0.02), f"n{node}: {self.reason(node, RailId(0, 0))}; {self.reason(node, RailId(1, 0))}")
      print(f"n{node} knows after {time.monotonic() - since:.2f} s: {self.reason(node, RailId(1, 0))}", flush=True)
    self.expect_stall_within(fault_ns)
    self.lab.lose_nothing(RailId(0, 0))
    healthy = lambda: all(self.reason(node, RailId(end, 0)).startswith("HEALTHY") for node in range(2) for end in range(2))
    self.assertTrue(wait_until(healthy, PATIENCE_S, 0.1), [self.reason(0, RailId(end, 0)) for end in range(2)])
    self.expect_back(RailId(1, 0))
    self.expect_right_end()


if __name__ == "__main__":
  unittest.main()
