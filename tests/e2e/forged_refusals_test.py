"""Somebody on a rail says in a dead NIC's name "port unreachable", which a living kernel would: that is no answer to a probe."""

import pathlib
import socket
import struct
import sys
import tempfile
import threading
import unittest

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import PEER_PORT, Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.netns_socket import open_in
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, keep_test_logs

ICMP_UNREACHABLE, ICMP_PORT = 3, 3
# Far more often than a pair is probed.
EVERY_S = 0.005


def _checksum(data: bytes) -> int:
  total = sum(struct.unpack(f"!{len(data) // 2}H", data))
  while total >> 16:
    total = (total & 0xffff) + (total >> 16)
  return ~total & 0xffff


def _ip_header(protocol: int, source: str, to: str, body_bytes: int) -> bytes:
  """The kernel makes the checksum of one that is sent; of one that is quoted nobody looks at it."""
  return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + body_bytes, 1, 0, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(to))


def refusal(victim: str, to: str) -> bytes:
  """The packet in which `victim` refuses a probe that `to` is said to have sent."""
  quoted = _ip_header(socket.IPPROTO_UDP, to, victim, 8) + struct.pack("!HHHH", PEER_PORT, PEER_PORT, 8, 0)
  head = struct.pack("!BBHI", ICMP_UNREACHABLE, ICMP_PORT, 0, 0)
  body = struct.pack("!BBHI", ICMP_UNREACHABLE, ICMP_PORT, _checksum(head + quoted), 0) + quoted
  return _ip_header(socket.IPPROTO_ICMP, victim, to, len(body)) + body


class ForgedRefusals(unittest.TestCase):

  def setUp(self) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      self.skipTest(f"needs root: {reason}")
    namespaces.sweep()
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-e2e-", dir="/tmp")))
    self.addCleanup(keep_test_logs, folder, self.id())
    self.lab = self.enterContext(NamespaceLab(nodes=3, rails=2))
    self.cluster = Cluster(self.lab, built_binaries(), folder, self.enterContext(Processes(folder)))
    self.cluster.start_daemons()

  def pair(self) -> str:
    """What n0 thinks of the path from its rail0 to that of n1."""
    pairs = self.cluster.ctl_json(0, "path", "probe", "n0", "n1").get("pairs", [])
    return next((pair["state"] for pair in pairs if pair["nic"] == "rail0" and pair["peer_nic"] == "rail0"), "none")

  def expect_pair(self, state: str) -> None:
    self.assertTrue(wait_until(lambda: self.pair() == state, PATIENCE_S, 0.1), f"n0/rail0 - n1/rail0 is {self.pair()}, not {state}")

  def test_are_no_answers(self):
    self.expect_pair("up")
    victim, to = (self.lab.rail_address(RailId(node, 0)) for node in (1, 0))
    packet, over = refusal(victim, to), threading.Event()
    with open_in(self.lab.namespace(2), socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sender, \
        open_in(self.lab.namespace(0), socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as receiver:

      def forge() -> None:
        while not over.wait(EVERY_S):
          sender.sendto(packet, (to, 0))

      forger = threading.Thread(target=forge)
      forger.start()
      try:
        receiver.settimeout(PATIENCE_S)
        arrived, (source, _) = receiver.recvfrom(256)
        self.assertEqual((arrived[20:22], source), (bytes((ICMP_UNREACHABLE, ICMP_PORT)), victim), "what is forged does not arrive")
        self.lab.blackhole(RailId(1, 0))
        self.expect_pair("silent")
        self.assertTrue(forger.is_alive(), "nothing was forged any more")
        nic_state = lambda: self.cluster.ctl_json(0, "nic", "why", "n1/rail0")["nic"]["state"]
        self.assertTrue(wait_until(lambda: nic_state() == "FAILED", PATIENCE_S, 0.1), f"n1/rail0 is {nic_state()}")
        self.lab.unblackhole(RailId(1, 0))
        self.expect_pair("up")
      finally:
        over.set()
        forger.join()


if __name__ == "__main__":
  sys.exit(unittest.main())
