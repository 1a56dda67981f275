import os
import socket
import subprocess
import sys
import unittest

from testing.lab import namespaces
from testing.lab.lab import LabError, RailId
from testing.lab.layout import owner_pid
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import wait_until

_SENDER = """
import socket, sys
data = bytes(int(sys.argv[3]))
with socket.socket() as sender:
  sender.settimeout(20)
  sender.bind((sys.argv[1], 0))
  sender.connect((sys.argv[2], 5001))
  sender.sendall(data)
"""
_RECEIVER = """
import socket, sys
with socket.create_server((sys.argv[1], 5001)) as server:
  print('ready', flush=True)
  server.settimeout(20)
  connection, _ = server.accept()
  while connection.recv(1 << 16):
    pass
"""
# Echoes on every rail until its standard input ends. A rail that is down cannot be listened on through its device, but by its address.
_MESH_RECEIVER = """
import select, socket, sys
servers = []
for rail, address in enumerate(sys.argv[1:]):
  server = socket.create_server((address, 5002), backlog=16)
  server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'rail%d' % rail)
  servers.append(server)
print('ready', flush=True)
kept = []
while True:
  ready, _, _ = select.select(servers + [sys.stdin], [], [])
  if sys.stdin in ready:
    break
  for server in ready:
    connection, _ = server.accept()
    connection.sendall(b'y')
    kept.append(connection)
"""
# Tries all pairs at once and prints those that answered within 3 s.
_MESH_SENDER = """
import select, socket, sys, time
rails, ends = int(sys.argv[1]), sys.argv[2:]
asked = {}
for one in range(rails):
  for other in range(rails):
    sender = socket.socket()
    sender.setblocking(False)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'rail%d' % one)
    sender.bind((ends[one], 0))
    sender.connect_ex((ends[rails + other], 5002))
    asked[sender] = (one, other)
deadline = time.monotonic() + 3
while asked and time.monotonic() < deadline:
  ready, _, _ = select.select(list(asked), [], [], 0.1)
  for sender in ready:
    pair = asked.pop(sender)
    try:
      if sender.recv(1) == b'y':
        print(*pair)
    except OSError:
      pass
"""


def ours() -> list[str]:
  return [name for name in os.listdir("/run/netns") if owner_pid(name) == os.getpid()] if os.path.isdir("/run/netns") else []


class NamespaceLabTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")

  def send(self, lab: NamespaceLab, source: RailId, target: RailId, size: int) -> None:
    python = [sys.executable, "-c"]
    receiver = subprocess.Popen(lab.command(target.node, python + [_RECEIVER, lab.rail_address(target)]), stdout=subprocess.PIPE, text=True)
    try:
      self.assertEqual(receiver.stdout.readline(), "ready\n")
      addresses = [lab.rail_address(source), lab.rail_address(target), str(size)]
      subprocess.run(lab.command(source.node, python + [_SENDER] + addresses), check=True, timeout=30)
    finally:
      receiver.wait(30)
      receiver.stdout.close()

  def test_carries_bytes_and_counts_them(self):
    for fabric in ("rail", "full"):
      with self.subTest(fabric), NamespaceLab(nodes=2, rails=2, fabric=fabric) as lab:
        self.send(lab, RailId(0, 1), RailId(1, 1), 1 << 20)
        self.assertGreater(lab.counters(0)["rail1"].sent_bytes, 1 << 20)
        self.assertLess(lab.counters(0)["rail0"].sent_bytes, 1 << 16)
        self.assertGreater(lab.counters(1)["rail1"].received_bytes, 1 << 20)

  def test_a_full_fabric_carries_bytes_between_unlike_rails(self):
    with NamespaceLab(nodes=2, rails=2, fabric="full") as lab:
      self.send(lab, RailId(0, 1), RailId(1, 0), 1 << 20)
      self.assertGreater(lab.counters(0)["rail1"].sent_bytes, 1 << 20)
      self.assertGreater(lab.counters(1)["rail0"].received_bytes, 1 << 20)

  def reached(self, lab: NamespaceLab) -> set[tuple[int, int]]:
    """Pairs (rail of n0, rail of n1) that connect between sockets that are bound to their devices at both ends, like the plugin's."""
    receiver = subprocess.Popen(lab.command(1, [sys.executable, "-c", _MESH_RECEIVER, *(lab.rail_address(RailId(1, rail)) for rail in
                                                                                        range(lab.rails))]),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
      self.assertEqual(receiver.stdout.readline(), "ready\n")
      ends = [lab.rail_address(RailId(node, rail)) for node in (0, 1) for rail in range(lab.rails)]
      sender = subprocess.run(lab.command(0, [sys.executable, "-c", _MESH_SENDER, str(lab.rails), *ends]), capture_output=True, text=True,
                              check=True, timeout=60)
      return {(int(words[0]), int(words[1])) for words in map(str.split, sender.stdout.splitlines())}
    finally:
      receiver.communicate(timeout=30)

  def test_a_full_fabric_joins_every_rail_with_every_rail(self):
    with NamespaceLab(nodes=2, rails=4, fabric="full") as lab:
      everything = {(one, other) for one in range(4) for other in range(4)}
      self.assertEqual(self.reached(lab), everything)
      lab.cut(RailId(1, 2))
      self.assertEqual(self.reached(lab), {pair for pair in everything if pair[1] != 2})
      lab.heal(RailId(1, 2))
      self.assertTrue(wait_until(lambda: self.reached(lab) == everything, 20))

  def test_a_rail_fabric_joins_like_rails_alone(self):
    with NamespaceLab(nodes=2, rails=4, fabric="rail") as lab:
      self.assertEqual(self.reached(lab), {(rail, rail) for rail in range(4)})

  def test_cut_and_heal(self):
    for fabric in ("rail", "full"):
      with self.subTest(fabric), NamespaceLab(nodes=2, rails=1, fabric=fabric) as lab:
        rail = RailId(0, 0)
        before_ns = lab.cut(rail)
        self.assertFalse(lab.link_is_up(rail))
        self.assertGreater(lab.heal(rail), before_ns)
        self.assertTrue(lab.link_is_up(rail))
        self.send(lab, rail, RailId(1, 0), 1 << 16)

  def test_a_black_hole_has_no_link_event(self):
    with NamespaceLab(nodes=2, rails=1) as lab:
      lab.blackhole(RailId(1, 0))
      self.assertTrue(lab.link_is_up(RailId(1, 0)))
      probe = ["timeout", "2", "bash", "-c", f"echo > /dev/tcp/{lab.rail_address(RailId(1, 0))}/5001"]
      silent = subprocess.run(lab.command(0, probe), capture_output=True, check=False)
      self.assertNotIn(b"refused", silent.stderr)
      lab.unblackhole(RailId(1, 0))
      refused = lambda: b"refused" in subprocess.run(lab.command(0, probe), capture_output=True, check=False).stderr
      self.assertTrue(wait_until(refused, 20, every_s=0.2))

  def test_one_way_is_lost(self):
    with NamespaceLab(nodes=2, rails=1) as lab:
      probe = ["timeout", "1", "bash", "-c", f"echo > /dev/tcp/{lab.rail_address(RailId(1, 0))}/5001"]
      refused = lambda: b"refused" in subprocess.run(lab.command(0, probe), capture_output=True, check=False).stderr
      self.assertTrue(wait_until(refused, 20, every_s=0.2))
      for node, outgoing in ((1, False), (1, True), (0, True)):
        lab.lose(RailId(node, 0), "", outgoing)
        self.assertFalse(refused(), f"n{node}, outgoing {outgoing}")
        lab.lose_nothing(RailId(node, 0), outgoing)
        self.assertTrue(wait_until(refused, 20, every_s=0.2))

  def test_a_silent_management_network(self):
    with NamespaceLab(nodes=2, rails=1) as lab:
      probe = ["timeout", "1", "bash", "-c", f"echo > /dev/tcp/{lab.management_address(1)}/5001"]
      refused = lambda: b"refused" in subprocess.run(lab.command(0, probe), capture_output=True, check=False).stderr
      self.assertTrue(wait_until(refused, 20, every_s=0.2))
      lab.silence_management(1, True)
      self.assertFalse(refused())
      lab.silence_management(1, False)
      self.assertTrue(wait_until(refused, 20, every_s=0.2))

  def test_a_parted_path_leaves_the_others(self):
    with NamespaceLab(nodes=3, rails=1) as lab:
      lab.part(RailId(0, 0), RailId(1, 0))
      probe = lambda node, peer: subprocess.run(
          lab.command(node, ["timeout", "2", "bash", "-c", f"echo > /dev/tcp/{lab.rail_address(RailId(peer, 0))}/5001"]),
          capture_output=True, check=False).stderr
      self.assertNotIn(b"refused", probe(0, 1))
      self.assertIn(b"refused", probe(0, 2))
      self.assertIn(b"refused", probe(1, 2))
      lab.join(RailId(0, 0), RailId(1, 0))
      self.assertTrue(wait_until(lambda: b"refused" in probe(0, 1), 20, every_s=0.2))

  def test_reshape(self):
    with NamespaceLab(nodes=2, rails=1) as lab:
      lab.reshape(RailId(0, 0), "100mbit")
      shown = subprocess.run(lab.command(0, ["tc", "qdisc", "show", "dev", "rail0"]), capture_output=True, text=True, check=True)
      self.assertIn("100Mbit", shown.stdout)

  def test_two_labs_live_side_by_side_and_leave_nothing(self):
    with NamespaceLab(nodes=1, rails=1) as one, NamespaceLab(nodes=1, rails=1) as two:
      self.assertNotEqual(one.namespace(0), two.namespace(0))
      self.assertEqual(len(ours()), 4)
    self.assertEqual(ours(), [])

  def test_an_error_leaves_nothing(self):
    with self.assertRaises(ZeroDivisionError), NamespaceLab(nodes=1, rails=1):
      _ = 1 // 0
    self.assertEqual(ours(), [])

  def test_an_unknown_rail_is_named(self):
    with NamespaceLab(nodes=1, rails=1) as lab, self.assertRaisesRegex(LabError, "rail7"):
      lab.cut(RailId(0, 7))

  def test_the_sweep_takes_only_what_is_dead(self):
    killed = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    orphan = f"r2cc-{int(killed.stdout)}-0-n0"
    subprocess.run(["ip", "netns", "add", orphan], check=True)
    with NamespaceLab(nodes=1, rails=1):
      self.assertIn(orphan, namespaces.sweep())
      self.assertEqual(len(ours()), 2)


class SocketIsAvailable(unittest.TestCase):

  def test_loopback_needs_no_privilege(self):
    from testing.lab.loopback import LoopbackLab
    with LoopbackLab() as lab:
      addresses = lab.rails_variable(3).split(",")
      self.assertEqual(addresses, ["127.10.0.4", "127.11.0.4", "127.12.0.4", "127.13.0.4"])
      with socket.create_server((addresses[2], 0)):
        self.assertGreater(lab.free_port(0), 0)
      with self.assertRaises(LabError):
        lab.cut(RailId(0, 0))
