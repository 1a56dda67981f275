"""Rails that answer and do not carry: connections that are swallowed, packets that are lost by their size, connections that die slowly.

Each costs the job at most R2CC_SILENCE_MS and 100 ms, no byte is wrong, and the other rails go on.
"""

import statistics
import time
import unittest

from testing.lab.lab import RailId
from tests.e2e.stalled_case import BUSY_MS, LARGE, STALL_MOST_MS, StalledCase


class StalledRails(StalledCase):

  # One bulk connection, as a sick member of a LAG swallows it.

  def test_bytes_of_a_connection_are_swallowed(self):
    self.start()
    fault_ns = self.swallow_busiest(0)
    self.expect_stall_within(fault_ns)
    self.expect_log("carries nothing")
    self.expect_back(RailId(1, 0))
    self.expect_right_end()

  def test_answers_to_a_connection_are_swallowed(self):
    self.start()
    busiest = self.lab.connections(RailId(1, 0))[0]
    fault_ns = self.lab.lose(RailId(1, 0), f"tcp dport {busiest.local_port} tcp sport {busiest.peer_port}")
    self.expect_stall_within(fault_ns)
    self.expect_log("carries nothing")
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
    fault_ns = self.swallow_busiest(0)
    self.expect_stall_within(fault_ns)
    self.expect_right_end()

  # Large packets alone, as a switch port loses them whose MTU was reset.

  def test_large_packets_are_lost_under_load(self):
    self.start()
    for rails in ([RailId(0, 0)], [RailId(1, 0)], [RailId(0, 0), RailId(1, 0)]):
      with self.subTest(rails):
        fault_ns = min([self.lab.lose(rail, LARGE) for rail in rails])
        self.expect_stall_within(fault_ns)
        self.expect_log("packets over 1500 bytes are lost")
        for rail in rails:
          self.lab.lose_nothing(rail)
        self.expect_back(RailId(0, 0))
        self.expect_back(RailId(1, 0))
    self.expect_right_end()

  def test_large_packets_are_lost_before_the_start(self):
    for rail in (RailId(0, 0), RailId(1, 0)):
      self.lab.lose(rail, LARGE)
    self.start()
    self.expect_log("is not used (packets over 1500 bytes are lost)")
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
    self.expect_log("is not used (packets over 1500 bytes are lost)")
    self.expect_right_end()
    totals = [line for line in self.log_text().splitlines() if "R2CC: rail n" in line and "/rail0 " in line]
    self.assertTrue(totals and all("not used: packets over 1500 bytes are lost" in line for line in totals), totals)

  # A connection that dies slowly.

  def test_nine_of_ten_packets_of_a_connection_are_lost(self):
    self.start()
    busiest = self.lab.connections(RailId(1, 0))[0]
    fault_ns = self.lab.lose(RailId(0, 0), f"tcp sport {busiest.local_port} tcp dport {busiest.peer_port} numgen random mod 10 < 9")
    self.expect_stall_within(fault_ns, 2 * (STALL_MOST_MS + BUSY_MS))
    self.expect_log("carries nothing")
    self.expect_right_end()

  def test_twenty_one_swallowed_connections(self):
    """The figure: median and worst. Each job loses a connection of each rail once, as a rail that stalls again waits for longer."""
    found = []
    for _ in range(7):
      self.start()
      for rail in range(3):
        fault_ns = self.swallow_busiest(rail)
        found.append(self.expect_stall_within(fault_ns))
        self.lab.lose_nothing(RailId(0, rail))
        self.expect_back(RailId(1, rail))
      self.expect_right_end()
    print(f"21 swallowed connections: stall median {statistics.median(found):.0f} ms, worst {max(found):.0f} ms")


if __name__ == "__main__":
  unittest.main()
