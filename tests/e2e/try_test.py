"""r2cc-try between two namespaces, as between two machines: a stand-in for ssh leads to the other one."""

import json
import pathlib
import signal
import subprocess
import threading
from typing import Callable

from testing.lab.binaries import built_file
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import clean_environment, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

# What sshd does: a shell for one string of words, and where the connection is from.
_SSH = """#!/bin/sh
host=$1; shift
[ "$host" = other ] || { echo "no such host: $host" >&2; exit 255; }
export SSH_CONNECTION="%(here)s 40000 %(there)s 22"
exec ip netns exec %(namespace)s sh -c "$*"
"""


class TryCase(NamespaceCase):

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2))
    self.ssh = self.folder / "ssh"
    self.ssh.write_text(_SSH % {"here": self.lab.management_address(0), "there": self.lab.management_address(1),
                                "namespace": self.lab.namespace(1)}, encoding="ascii")
    self.ssh.chmod(0o755)
    self.folders_before = set(pathlib.Path("/tmp").glob("r2cc-try-*"))
    self.printed: list[str] = []

  def start(self, *flags: str) -> subprocess.Popen:
    argv = [str(built_file("deploy/trial/try")), "--ssh", str(self.ssh), "--peer", "other", "--phase", "3", "--size", "16M", *flags,
            "rail0,rail1"]
    process = subprocess.Popen(self.lab.command(0, argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env=clean_environment({}))
    self.addCleanup(process.kill)
    return process

  def follow(self, process: subprocess.Popen, on_line: Callable[[str], None] = lambda line: None) -> int:
    """All that it says, until it ends."""
    watchdog = threading.Timer(4 * PATIENCE_S, process.kill)
    watchdog.start()
    for line in process.stdout:
      self.printed.append(line)
      on_line(line)
    watchdog.cancel()
    process.stdout.close()
    return process.wait()

  def text(self) -> str:
    return "".join(self.printed)

  def addresses(self, node: int) -> list[str]:
    shown = subprocess.run(self.lab.command(node, ["ip", "-j", "-4", "address", "show"]), check=True, capture_output=True)
    links = json.loads(shown.stdout)
    return [f"{link['ifname']} {one['local']}" for link in links if link["ifname"].startswith("rail") for one in link["addr_info"]]

  def expect_nothing_left(self) -> None:
    self.assertEqual(set(pathlib.Path("/tmp").glob("r2cc-try-*")), self.folders_before)
    for node in (0, 1):
      command = ["ip", "netns", "pids", self.lab.namespace(node)]
      pids = lambda command=command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
      self.assertTrue(wait_until(lambda pids=pids: pids().strip() == "", PATIENCE_S, 0.1), f"node {node} still runs {pids()}")


class TryTest(TryCase):

  def test_a_pulled_cable(self):
    cable = RailId(1, 1)

    def person(line: str) -> None:
      if line.startswith("Pull one cable: "):
        self.lab.cut_switch_port(cable)
      if line.startswith("Put it back"):
        self.lab.heal_switch_port(cable)

    before = [self.addresses(node) for node in (0, 1)]
    code = self.follow(self.start(), person)
    self.assertEqual(code, 0, self.text())
    self.assertRegex(self.text(), "other/rail1 is FAILED")
    self.assertIn("the job goes on without it", self.text())
    self.assertIn("all rails are well again", self.text())
    self.assertRegex(self.text(), r"\$ r2ccctl nic why other/rail1\n")
    self.assertIn("the kernel of its node reports", self.text())
    self.assertRegex(self.text(), "[▁▂▃▄▅▆▇█]{3}")
    report = self.text().partition("$ r2ccctl job report try\n")[2]
    self.assertIn("rail1", report)
    self.assertIn("PASS", report)
    self.assertEqual([self.addresses(node) for node in (0, 1)], before)
    self.expect_nothing_left()

  def test_ports_without_addresses_and_a_drill(self):
    for node in (0, 1):
      for rail in (0, 1):
        subprocess.run(self.lab.command(node, ["ip", "address", "flush", "dev", f"rail{rail}"]), check=True)
    code = self.follow(self.start("--fault", "drill"))
    self.assertEqual(code, 0, self.text())
    self.assertIn("198.18.0.1", self.text())
    self.assertIn("the job goes on without it", self.text())
    self.assertEqual([self.addresses(node) for node in (0, 1)], [[], []])
    self.expect_nothing_left()

  def test_one_that_is_ended_leaves_nothing(self):
    process = self.start()

    def end(line: str) -> None:
      if line.startswith("Pull one cable: "):
        process.send_signal(signal.SIGTERM)

    self.assertEqual(self.follow(process, end), 128 + signal.SIGTERM, self.text())
    self.assertIn("r2cc-try: ended by SIGTERM", self.text())
    self.expect_nothing_left()

  def test_nobody_pulls(self):
    self.assertEqual(self.follow(self.start("--wait", "2")), 1, self.text())
    self.assertIn("FAIL  no cable was pulled within 2 s", self.text())
    self.expect_nothing_left()

  def test_what_cannot_be_tried_is_one_line(self):
    for flags, line in ((["--peer", "nowhere"], "r2cc-try: nowhere: sh -c 'echo $SSH_CONNECTION': no such host: nowhere"),
                        (["--peer-ports", "rail0,rail7"], "r2cc-try: other has no interface rail7; it has mgmt0 rail0 rail1")):
      with self.subTest(line):
        self.printed = []
        self.assertEqual(self.follow(self.start(*flags)), 1)
        self.assertEqual(self.printed[-1].strip(), line)
        self.expect_nothing_left()
