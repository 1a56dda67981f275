"""Rails that answer and do not carry: connections that are swallowed, packets that are lost by their size, connections that die slowly.

Each costs the job at most R2CC_SILENCE_MS and 100 ms, no byte is wrong, and the other rails go on.
"""

import statistics
import time
import unittest

from deploy.drill.rig import stalls
from deploy.drill.rig.binaries import built_binaries
from deploy.drill.rig.cluster import Cluster, Job, JobOptions
from deploy.drill.rig.lab import RailId, monotonic_ns
from deploy.drill.rig.namespaces import NamespaceLab
from deploy.drill.rig.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase, expect_iterations

SILENCE_MS = 250
# R2CC_SILENCE_MS, and what the retransmission timeout of Linux, samples and ticks add.
STALL_MOST_MS = SILENCE_MS + 100
# On a machine that does other work a tick may be late.
BUSY_MS = 150
LARGE = "meta length > 1500"


class StalledRails(NamespaceCase):
  """Two nodes of three rails without r2ccd: what the plugin finds for itself."""

  def setUp(self) -> None:
    super().setUp()
    self.jobs = 0
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=3, rate="500mbit"))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.enterContext(Processes(self.folder)), daemons=False)

  def start(self, *flags: str, size: str = "4M", **environment: str) -> Job:
    options = JobOptions(size=size, seconds_max=600, environment={"R2CC_LOG": "info"} | environment, flags=flags)
    self.jobs += 1
    self.job = self.cluster.start_job(f"job{self.jobs}", options)
    expect_iterations(self, self.job, 20)
    return self.job

  def expect_stall_within(self, fault_ns: int, most_ms: float = STALL_MOST_MS + BUSY_MS) -> float:
    """How long a flow waited after the fault."""
    time.sleep(2)
    self.job.follower.poll()
    window = stalls.Window(fault_ns, monotonic_ns())
    stall_ms = stalls.longest_wait_ns(self.job.follower.rows, window) / 1e6
    last_ns = stalls.last_completion_ns(self.job.follower.rows) or 0
    self.assertGreater(last_ns, fault_ns + 1e9, f"nothing completes: {self.words()}")
    print(f"{self.id().rpartition('.')[2]}: stall {stall_ms:.0f} ms")
    self.assertLess(stall_ms, most_ms, self.words())
    return stall_ms

  def words(self) -> str:
    return "".join(rank.errors()[-2000:] for rank in self.job.ranks)

  def expect_word(self, word: str) -> None:
    self.assertTrue(wait_until(lambda: word in self.words(), 5, 0.1), f"nobody says '{word}': {self.words()}")

  def expect_right_end(self) -> None:
    self.job.ask_to_stop()
    self.assertTrue(self.job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(self.job.failures(), [])
    report = self.job.report()
    self.assertEqual((report["wrong_elements"], report["late_writes"], report["pass"]), (0, 0, True))

  def expect_back(self, rail: RailId) -> None:
    """Data travels on the rail again."""
    before = self.lab.counters(rail.node)[f"rail{rail.rail}"].sent_bytes
    sent = lambda: self.lab.counters(rail.node)[f"rail{rail.rail}"].sent_bytes - before
    self.assertTrue(wait_until(lambda: sent() > 8 << 20, PATIENCE_S, 0.1), f"{rail} carries nothing: {self.words()}")

  # One bulk connection, as a sick member of a LAG swallows it.

  def test_what_a_connection_sends_is_swallowed(self):
    self.start()
    busiest = self.lab.connections(RailId(1, 0))[0]
    fault_ns = self.lab.lose(RailId(0, 0), f"tcp sport {busiest.local_port} tcp dport {busiest.peer_port}")
    self.expect_stall_within(fault_ns)
    self.expect_word("carries nothing")
    self.expect_back(RailId(1, 0))
    self.expect_right_end()

  def test_what_answers_a_connection_is_swallowed(self):
    self.start()
    busiest = self.lab.connections(RailId(1, 0))[0]
    fault_ns = self.lab.lose(RailId(1, 0), f"tcp dport {busiest.local_port} tcp sport {busiest.peer_port}")
    self.expect_stall_within(fault_ns)
    self.expect_word("carries nothing")
    self.expect_back(RailId(1, 0))
    self.expect_right_end()

  def test_every_connection_in_turn(self):
    """Control connections too, of both directions."""
    self.start(size="1M")
    for connection in self.lab.connections(RailId(1, 1)):
      with self.subTest(connection):
        fault_ns = self.lab.lose(RailId(0, 1), f"tcp sport {connection.local_port} tcp dport {connection.peer_port}")
        self.expect_stall_within(fault_ns)
        self.lab.lose_nothing(RailId(0, 1))
    self.expect_right_end()

  def test_small_messages(self):
    self.start(size="8K")
    busiest = self.lab.connections(RailId(1, 0))[0]
    fault_ns = self.lab.lose(RailId(0, 0), f"tcp sport {busiest.local_port} tcp dport {busiest.peer_port}")
    self.expect_stall_within(fault_ns)
    self.expect_right_end()

  # Large packets alone, as a switch port loses them whose MTU was reset.

  def test_large_packets_are_lost_under_load(self):
    self.start()
    for rails in ([RailId(0, 0)], [RailId(1, 0)], [RailId(0, 0), RailId(1, 0)]):
      with self.subTest(rails):
        fault_ns = min([self.lab.lose(rail, LARGE) for rail in rails])
        self.expect_stall_within(fault_ns)
        self.expect_word("packets over 1500 bytes are lost")
        for rail in rails:
          self.lab.lose_nothing(rail)
        self.expect_back(RailId(0, 0))
        self.expect_back(RailId(1, 0))
    self.expect_right_end()

  def test_large_packets_are_lost_before_the_start(self):
    for rail in (RailId(0, 0), RailId(1, 0)):
      self.lab.lose(rail, LARGE)
    self.start()
    self.expect_word("is not used (packets over 1500 bytes are lost)")
    before = self.lab.counters(1)["rail0"].sent_bytes
    time.sleep(1)
    self.assertLess(self.lab.counters(1)["rail0"].sent_bytes - before, 1 << 20)
    for rail in (RailId(0, 0), RailId(1, 0)):
      self.lab.lose_nothing(rail)
    self.expect_back(RailId(1, 0))
    self.expect_right_end()

  def test_a_rail_that_never_carried_is_not_called_up(self):
    for rail in (RailId(0, 0), RailId(1, 0)):
      self.lab.lose(rail, LARGE)
    self.start("--debug")
    self.expect_word("is not used (packets over 1500 bytes are lost)")
    self.expect_right_end()
    totals = [line for line in self.words().splitlines() if "R2CC: rail n" in line and "/rail0 " in line]
    self.assertTrue(totals and all("not used: packets over 1500 bytes are lost" in line for line in totals), totals)

  # A connection that dies slowly.

  def test_nine_of_ten_packets_of_a_connection_are_lost(self):
    self.start()
    busiest = self.lab.connections(RailId(1, 0))[0]
    fault_ns = self.lab.lose(RailId(0, 0), f"tcp sport {busiest.local_port} tcp dport {busiest.peer_port} numgen random mod 10 < 9")
    self.expect_stall_within(fault_ns, 2 * (STALL_MOST_MS + BUSY_MS))
    self.expect_word("carries nothing")
    self.expect_right_end()

  def test_twenty_one_swallowed_connections(self):
    """The figure: median and worst. Each job loses a connection of each rail once, as a rail that stalls again waits for longer."""
    found = []
    for _ in range(7):
      self.start()
      for rail in range(3):
        busiest = self.lab.connections(RailId(1, rail))[0]
        fault_ns = self.lab.lose(RailId(0, rail), f"tcp sport {busiest.local_port} tcp dport {busiest.peer_port}")
        found.append(self.expect_stall_within(fault_ns))
        self.lab.lose_nothing(RailId(0, rail))
        self.expect_back(RailId(1, rail))
      self.expect_right_end()
    print(f"21 swallowed connections: stall median {statistics.median(found):.0f} ms, worst {max(found):.0f} ms")


if __name__ == "__main__":
  unittest.main()
