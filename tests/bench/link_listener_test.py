import struct
import unittest

from testing.lab import namespaces
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import wait_until
from tests.bench.link_listener import LinkListener, links_down

UP, LOWER_UP = 0x1, 0x10000


def link(name: str, flags: int, kind: int = 16) -> bytes:
  value = name.encode() + b"\0"
  attributes = struct.pack("=HHI", 8, 13, 1000) + struct.pack("=HH", 4 + len(value), 3) + value
  body = struct.pack("=BxHiII", 0, 1, 7, flags, 0) + attributes
  body += b"\0" * (-len(body) % 4)
  return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


class LinksDown(unittest.TestCase):

  def test_down_is_without_carrier_or_by_the_operator(self):
    self.assertEqual(links_down(link("rail0", UP | LOWER_UP)), [])
    self.assertEqual(links_down(link("rail0", UP)), ["rail0"])
    self.assertEqual(links_down(link("rail0", 0) + link("rail11", UP | LOWER_UP) + link("mgmt0", 0)), ["rail0", "mgmt0"])

  def test_other_messages_and_cut_ones_are_ignored(self):
    self.assertEqual(links_down(link("rail0", 0, kind=20)), [])
    whole = link("rail0", 0)
    for length in range(len(whole) - len("rail0\0") - 2):
      self.assertEqual(links_down(whole[:length]), [], length)
    self.assertEqual(links_down(struct.pack("=IHHII", 0, 16, 0, 0, 0)), [])


class Listener(unittest.TestCase):

  def test_receives_only_cuts_of_its_own_namespace(self):
    if (reason := namespaces.missing_feature()) is not None:
      raise unittest.SkipTest(f"needs root: {reason}")
    with NamespaceLab(nodes=2, rails=1) as lab, LinkListener([lab.namespace(0), lab.namespace(1)]) as listener:
      before_ns = lab.cut(RailId(1, 0))
      self.assertTrue(wait_until(lambda: listener.down_ns(lab.namespace(1), "rail0", before_ns) is not None, 10, 0.01))
      self.assertIsNone(listener.down_ns(lab.namespace(0), "rail0", before_ns))
      self.assertIsNone(listener.down_ns(lab.namespace(1), "rail0", before_ns + 10**12))


if __name__ == "__main__":
  unittest.main()
