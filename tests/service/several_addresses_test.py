"""A peer's name with several addresses: one that nobody has does not keep the daemons apart."""

import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import unittest

from bazel import unittest_main

# Generous: the wait ends as soon as they are connected.
PATIENCE_S = 30
# Of the loopback's network, where a bare test has addresses for everybody.
NODE_A, NODE_B, NOBODY = "127.44.0.1", "127.44.0.2", "127.44.0.9"


def _free_port() -> int:
  """One that is free at all three addresses."""
  with socket.socket() as taken:
    taken.bind(("0.0.0.0", 0))
    return taken.getsockname()[1]


class SeveralAddressesTest(unittest.TestCase):

  def setUp(self):
    if os.geteuid() != 0:
      self.skipTest("needs root: has names of its own in /etc/hosts, in a mount namespace")
    self.r2ccd, self.r2ccctl = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-names-", dir="/tmp")))

  def start(self, node: str, address: str, port: int, more: str) -> None:
    """r2ccd with the test's own /etc/hosts."""
    config = self.folder / f"{node}.textproto"
    config.write_text(f'node: "{node}"\nlisten: "{address}:{port}"\ninsecure: true\nnics {{ name: "rail0" address: "{address}" }}\n{more}',
                      encoding="utf-8")
    with open(self.folder / f"{node}.log", "wb") as log:
      process = subprocess.Popen(
          ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.folder / "hosts", self.r2ccd, "--config",
           config, "--run_dir", self.folder / node, "--state_dir", self.folder / f"{node}-kept"], stdout=log, stderr=log)
    self.addCleanup(process.wait)
    self.addCleanup(process.kill)

  def peer_of_a(self) -> dict:
    """What node a says of its one peer; empty while it does not serve yet."""
    answer = subprocess.run([self.r2ccctl, "--run_dir", self.folder / "a", "-o", "json", "status"], capture_output=True, check=False)
    return json.loads(answer.stdout)["peers"][0] if answer.returncode == 0 else {}

  def connects(self, addresses: list[str], patience_s: float) -> bool:
    """Whether node a reaches its peer by a name with these addresses. Only a calls: b knows of no peers."""
    port = _free_port()
    (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{one} node-b\n" for one in addresses), encoding="ascii")
    self.start("b", NODE_B, port, "")
    self.start("a", NODE_A, port, f'peers {{ node: "b" address: "node-b:{port}" }}\n')
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
      if self.peer_of_a().get("connected"):
        return True
      time.sleep(0.05)
    return False

  def test_the_address_behind_a_dead_one_is_found(self):
    self.assertTrue(self.connects([NOBODY, NODE_B], PATIENCE_S), self.peer_of_a())

  def test_without_a_living_one_they_stay_apart(self):
    # Of the test itself: they do not find each other by another way.
    self.assertFalse(self.connects([NOBODY], patience_s=3))
    self.assertIn("node-b", json.dumps(self.peer_of_a()))
