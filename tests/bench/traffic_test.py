import pathlib
import unittest

from tests.bench import traffic

DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
 rail0: 5000000    5000    0    0    0     0          0         0  7000000    6000    0    0    0     0       0          0
rail10:1000000000  5000    0    0    0     0          0         0  8000000    6000    0    0    0     0       0          0
"""


NETSTAT = """TcpExt: SyncookiesSent TCPLossProbes TCPTimeouts TCPSpuriousRTOs
TcpExt: 0 5 7 1
IpExt: InNoRoutes TCPTimeouts
IpExt: 0 9
"""


class Traffic(unittest.TestCase):

  def test_reads_what_was_sent(self):
    self.assertEqual(traffic.sent_bytes(DEV), {"lo": 100, "rail0": 7000000, "rail10": 8000000})

  def test_reads_this_machine(self):
    self.assertIn("lo", traffic.sent_bytes(pathlib.Path("/proc/self/net/dev").read_text(encoding="ascii")))

  def test_finds_the_busiest_interface(self):
    self.assertEqual(traffic.busiest({"a": 5, "b": 90, "c": 0}, {"a": 50, "b": 100, "c": 99}, ["a", "b"]), "a")

  def test_counts_timeouts(self):
    self.assertEqual(traffic.tcp_timeouts(NETSTAT), 7)
    self.assertGreaterEqual(traffic.tcp_timeouts(pathlib.Path("/proc/self/net/netstat").read_text(encoding="ascii")), 0)
