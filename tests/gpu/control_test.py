import os
import socket
import tempfile
import threading
import unittest

from tests.gpu.control import RankEnd, RankPeer


class ControlTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory(dir="/tmp")
    self.addCleanup(folder.cleanup)
    path = os.path.join(folder.name, "s")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    self.addCleanup(listener.close)
    listener.bind(path)
    listener.listen(1)
    self.rank = RankEnd(path, 3)
    self.peer = RankPeer(listener.accept()[0])
    self.addCleanup(self.peer.close)

  def received(self, count: int) -> list[dict]:
    found = []
    while len(found) < count:
      found += self.peer.received()
    return found

  def test_a_rank_sends_its_number(self):
    self.assertEqual(self.received(1), [{"hello": 3}])

  def test_commands_come_in_order_and_are_seen_before_they_are_taken(self):
    self.assertFalse(self.rank.pending())
    self.peer.send({"do": "loop"})
    self.peer.send({"do": "stop"})
    self.assertEqual(self.rank.receive(), {"do": "loop"})
    self.assertTrue(self.rank.pending())  # read from the socket together with the first
    self.assertEqual(self.rank.receive(), {"do": "stop"})
    self.assertFalse(self.rank.pending())

  def test_messages_larger_than_a_read_arrive_whole(self):
    rows = {"rows": [[number, 1, 2] for number in range(50000)], "wrong": 0}
    sender = threading.Thread(target=self.rank.send, args=(rows,))
    sender.start()
    self.assertEqual(self.received(2)[1], rows)
    sender.join()

  def test_either_end_notices_that_the_other_is_gone(self):
    self.received(1)
    self.rank._socket.close()
    self.assertEqual(self.peer.received(), [])
    self.assertFalse(self.peer.is_open)

  def test_a_rank_without_orchestrator_ends(self):
    self.peer.close()
    with self.assertRaises(EOFError):
      self.rank.receive()

  def test_a_rank_that_takes_nothing_is_not_waited_for_without_limit(self):
    with self.assertRaises(TimeoutError):
      for _ in range(100):
        self.peer.send({"do": "x" * 100000}, timeout_s=0.05)
