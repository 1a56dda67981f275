"""The rig itself: what stands in a guest, that cables can be pulled, and that nothing is left of a guest however it ends."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from testing.lab.processes import wait_until
from testing.guest import guest

PATIENCE_S = 60  # waits end as soon as what they wait for is there

# 64 KiB over TCP from node a to node b of rail 1; how many bytes node b's interface received.
_CROSS = r"""
import socket
def received():
  return int(open("/sys/class/net/v1b/statistics/rx_bytes").read())
before = received()
server = socket.create_server(("10.0.1.2", 7000))
client = socket.create_connection(("10.0.1.2", 7000), source_address=("10.0.1.1", 0))
client.sendall(bytes(65536))
client.close()
there, _ = server.accept()
while there.recv(65536):
  pass
print("crossed", received() - before)
"""
_STATES = "rdma link | sed -n 's/^link \\([^ /]*\\).* state \\([A-Z]*\\) .*/\\1 \\2/p'"


def _processes_that_name(folder: pathlib.Path) -> list[str]:
  """The command lines with `folder` in them."""
  found = []
  for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
      line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
      continue  # has ended
    if str(folder) in line:
      found.append(line)
  return found


class GuestTest(unittest.TestCase):

  def setUp(self):
    reason = guest.missing_feature()
    if reason is not None:
      self.skipTest(f"needs one_guest: {reason}")
    folder = tempfile.TemporaryDirectory(prefix="r2cc-guests-", dir=os.environ.get("TEST_TMPDIR"))
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)

  def _guest(self, **options) -> guest.Guest:
    """A guest whose folder is looked for when all is over, and its process too."""
    machine = guest.Guest(show=self._show, **options)
    self.shown = []

    def nothing_is_left():
      self.assertFalse(machine._folder.exists(), machine._folder)
      self.assertEqual(_processes_that_name(machine._folder), [])
    self.addCleanup(nothing_is_left)
    return machine

  def _show(self, line: str) -> None:
    self.shown.append(line)
    print(line, flush=True)

  def _bash(self, script: str, limit_s: float = 60, **options) -> guest.Result:
    with self._guest(**options) as machine:
      result = machine.run(["bash", "-c", script], limit_s=limit_s)
      self.files = {path.name: path.read_text(encoding="utf-8") for path in result.folder.iterdir()}
    return result

  def test_two_nodes_with_two_rails_whose_packets_cross(self):
    program = self.folder / "cross.py"
    program.write_text(_CROSS, encoding="ascii")
    result = self._bash(f"""
        python3 {program} || exit 1
        {_STATES}
        ip link set v0a down; sleep 0.3; echo down; {_STATES}
        ip link set v0a up; sleep 0.3; echo up; {_STATES}
        touch /tmp/only-in-the-guest
        echo kept > $R2CC_GUEST_OUT/file
        exit 7""")
    self.assertEqual(result.status, 7)
    crossed, *states = result.output.splitlines()
    self.assertGreater(int(re.fullmatch(r"crossed (\d+)", crossed).group(1)), 65536)
    all_up = ["rxe0a ACTIVE", "rxe0b ACTIVE", "rxe1a ACTIVE", "rxe1b ACTIVE"]
    # A pair has one carrier: both ends lose it.
    self.assertEqual(states, all_up + ["down", "rxe0a DOWN", "rxe0b DOWN", *all_up[2:]] + ["up"] + all_up)
    self.assertEqual(self.files, {"file": "kept\n"})
    self.assertEqual(result.kernel_complaints(), [])
    self.assertFalse(os.path.exists("/tmp/only-in-the-guest"))
    # What it did was to be seen while it did it.
    self.assertIn("rails are up", self.shown)
    self.assertIn("| rxe0a ACTIVE", self.shown)

  def test_one_end_of_a_bridged_rail_fails_alone(self):
    result = self._bash(f"ip link set p0a down; sleep 0.3; {_STATES}", rails=1, wiring="bridge")
    self.assertEqual((result.status, result.output.splitlines()), (0, ["rxe0a DOWN", "rxe0b ACTIVE"]))

  def test_a_command_that_does_not_end_is_stopped_with_its_last_lines(self):
    began_s = time.monotonic()
    with self.assertRaisesRegex(guest.GuestError, r"it still runs the command: .*command: on and on;"):
      self._bash("echo on and on; sleep 1000", limit_s=2, rails=0)
    self.assertLess(time.monotonic() - began_s, 60)

  def test_a_guest_that_crashes_is_no_success(self):
    with self.assertRaisesRegex(guest.GuestError, r"ended before the command did: .*Kernel panic"):
      self._bash("echo c > /proc/sysrq-trigger; sleep 1000", rails=0)

  def test_a_run_that_is_ended_takes_its_guest_along(self):
    for number in (signal.SIGTERM, signal.SIGKILL):
      with self.subTest(number.name):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), TEST_TMPDIR=str(self.folder))
        run = subprocess.Popen([sys.executable, "-m", "tests.rigs.one_guest.main", "--rails", "0", "--", "sleep", "1000"], env=environment,
                               stderr=subprocess.DEVNULL)
        self.assertTrue(wait_until(lambda: _processes_that_name(self.folder), PATIENCE_S), "no guest was started")
        run.send_signal(number)
        run.wait(PATIENCE_S)
        self.assertTrue(wait_until(lambda: not _processes_that_name(self.folder), PATIENCE_S), _processes_that_name(self.folder))
        if number == signal.SIGTERM:  # nobody cleans up after the other but Bazel
          self.assertEqual(list(self.folder.iterdir()), [])

  def test_rails_that_cannot_be_made_are_reported(self):
    with self.assertRaisesRegex(guest.GuestError, "could not be set up: rails: the wiring is pair or bridge, not ring"):
      self._bash("true", wiring="ring")
