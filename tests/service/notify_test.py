"""r2ccd as a service of Type=notify, with a stand-in for systemd that speaks its protocol."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from bazel import unittest_main
from tests.service import manager
from tests.service import unit_file

# The unit's own, 10 s, is the time in which a test would wait for nothing.
WATCHDOG_S = 2
# Stops one thread, argument 1, and goes on when its process has ended. Not in the test's own process, whose wait() for its child would
# take a stop for its end. The numbers are of linux/ptrace.h: PTRACE_SEIZE and PTRACE_INTERRUPT.
STOP_THREAD = """
import ctypes, os, sys
libc, thread = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
for request in (0x4206, 0x4207):
  if libc.ptrace(request, thread, None, None) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
while not (os.WIFEXITED(status := os.waitpid(thread, 0x40000000)[1]) or os.WIFSIGNALED(status)):
  print("stopped", flush=True)
"""
# Nobody's in particular, and of no group that counts.
USER = "65534"


def _thread_state(pid: int, thread: int) -> str:
  return pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


class NotifyTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.unit_path, cls.r2ccd, cls.r2ccctl = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    cls.unit = unit_file.read(cls.unit_path)
    if os.geteuid() != 0:
      raise unittest.SkipTest("needs root: becomes another user, with the unit's limits")

  def setUp(self):
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-service-", dir="/tmp")))
    self.folder.chmod(0o755)
    for name in ("run", "run-control", "state"):
      (self.folder / name).mkdir()
      shutil.chown(self.folder / name, int(USER), int(USER))
    self.config = self.folder / "r2ccd.textproto"
    self.config.write_text('node: "n0"\nlisten: "127.0.0.1:0"\nnics { name: "rail0" address: "127.9.0.1" }\n', encoding="utf-8")
    program = shutil.copy(self.r2ccd, self.folder / "r2ccd")
    command = [program, "--config", str(self.config), "--run_dir", str(self.folder / "run"), "--state_dir", str(self.folder / "state")]
    self.manager = self.enterContext(
        manager.Manager(unit_file.wrapped(self.unit, USER, USER, command), self.folder, WATCHDOG_S))

  def ask(self, *arguments: str) -> dict:
    answer = subprocess.run([self.r2ccctl, "--run_dir", str(self.folder / "run"), "-o", "json", *arguments], check=True,
                            capture_output=True, timeout=manager.PATIENCE_S)
    return json.loads(answer.stdout)

  def health(self) -> subprocess.CompletedProcess:
    """As a probe asks: it must be over within a second."""
    begun = time.monotonic()
    answer = subprocess.run([self.r2ccctl, "--run_dir", self.folder / "run", "health"], capture_output=True, text=True, check=False)
    self.assertLess(time.monotonic() - begun, 1)
    return answer

  def test_ready_means_that_the_first_plan_is_there(self):
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    self.assertNotEqual(self.ask("plan", "show")["epoch"]["counter"], "0")
    self.assertTrue((self.folder / "run" / "attach.sock").is_socket())
    self.assertRegex(self.manager.words["STATUS"], r"^node n0: 1 NICs.*; 0 of 0 peers connected; 0 jobs; plan \d+$")

  def test_no_capability_and_no_new_privileges(self):
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    pid = self.manager.process.pid
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines())
    for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
      self.assertEqual(int(status[name], 16), 0, name)
    self.assertEqual(status["NoNewPrivs"], "1")
    self.assertEqual(status["Uid"].split(), [USER] * 4)
    # Of a process that leaves no core the kernel gives the files in /proc to root.
    self.assertEqual(os.stat(f"/proc/{pid}/maps").st_uid, 0)

  def test_its_priority_comes_by_limits_alone(self):
    _, refused = unit_file.limits(self.unit)
    if refused:
      self.skipTest(f"needs CAP_SYS_RESOURCE: raises limits: {' '.join(refused)}")
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    self.assertEqual(os.sched_getscheduler(self.manager.process.pid), os.SCHED_RR)

  def test_a_reload_and_its_error_are_reported_to_the_manager(self):
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    sound = self.config.read_text(encoding="utf-8")
    self.config.write_text(sound + "nice: 77\n", encoding="utf-8")
    self.manager.received.clear()
    self.manager.process.send_signal(signal.SIGHUP)
    self.assertTrue(self.manager.until(lambda: "READY=1" in self.manager.received), self.manager.log)
    self.assertLess(self.manager.received.index("RELOADING=1"), self.manager.received.index("READY=1"))
    self.assertTrue(any(line.startswith("MONOTONIC_USEC=") for line in self.manager.received))
    self.assertIn(f"{self.config}:4: nice is -20 to 19", self.manager.words["STATUS"])
    self.config.write_text(sound, encoding="utf-8")
    self.assertEqual(self.ask("config", "reload")["applied"], [])
    self.assertTrue(self.manager.until(lambda: self.manager.words["STATUS"].startswith("node n0")), self.manager.log)
    self.assertEqual(self.manager.kills, 0)

  def test_health_is_an_exit_code(self):
    asked = self.health()
    self.assertEqual(asked.returncode, 1)
    self.assertIn("r2ccd is not running", asked.stderr)
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    asked = self.health()
    self.assertEqual((asked.returncode, asked.stderr), (0, ""))
    self.assertRegex(asked.stdout, r"^ok: r2ccd of node n0 serves plan [1-9]\d*\n$")

  def test_health_does_not_wait_in_a_queue_that_is_full(self):
    # As that of a daemon that is stopped, which probes have asked for a while.
    listener = self.enterContext(socket.socket(socket.AF_UNIX))
    listener.bind(str(self.folder / "run-control" / "r2ccd.sock"))
    listener.listen(0)
    try:
      while True:
        waiting = self.enterContext(socket.socket(socket.AF_UNIX))
        waiting.setblocking(False)
        waiting.connect(listener.getsockname())
    except BlockingIOError:
      pass
    asked = self.health()
    self.assertEqual(asked.returncode, 1)
    self.assertIn("accepts no connections", asked.stderr)

  def test_it_is_fed_for_longer_than_the_watchdog_waits(self):
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    self.manager.run_for(3 * WATCHDOG_S)
    self.assertEqual(self.manager.kills, 0)
    self.assertGreaterEqual(self.manager.received.count("WATCHDOG=1"), 6)

  def test_a_stuck_core_is_killed_and_restarted(self):
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    pid = self.manager.process.pid
    # The core's thread alone: whoever fed the watchdog from another one would go on.
    stopper = self.enterContext(subprocess.Popen([sys.executable, "-c", STOP_THREAD, str(pid)], stdout=subprocess.PIPE, text=True))
    self.assertEqual(stopper.stdout.readline(), "stopped\n")
    self.assertEqual(_thread_state(pid, pid), "t")
    asked = self.health()
    self.assertEqual((asked.returncode, asked.stdout), (1, ""))
    self.assertIn("did not answer within 0.8 s", asked.stderr)
    others = [int(thread) for thread in os.listdir(f"/proc/{pid}/task") if int(thread) != pid]
    self.assertGreater(len(others), 2)
    self.assertFalse([thread for thread in others if _thread_state(pid, thread) == "t"])
    begun = time.monotonic()
    self.assertTrue(self.manager.until(lambda: self.manager.kills == 1, patience_s=3 * WATCHDOG_S), "nobody missed the core")
    self.assertLess(time.monotonic() - begun, 2 * WATCHDOG_S)
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    self.manager.run_for(2 * WATCHDOG_S)
    self.assertEqual(self.manager.kills, 1)

  def test_it_reports_that_it_stops(self):
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    self.manager.process.send_signal(signal.SIGTERM)
    self.assertTrue(self.manager.until(lambda: self.manager.process.poll() is not None))
    self.manager.turn()
    self.assertEqual(self.manager.process.returncode, 0)
    self.assertEqual(self.manager.words["STOPPING"], "1")
    self.assertTrue((self.folder / "run").is_dir(), "containers have it mounted")

  def test_a_wrong_configuration_is_in_the_status(self):
    self.config.write_text('node: "n0"\nlisten: 5\n', encoding="utf-8")
    self.assertFalse(self.manager.start_and_wait())
    self.manager.turn()
    self.assertEqual(self.manager.process.returncode, 1)
    self.assertNotIn("READY", self.manager.words)
    self.assertIn(f"{self.config}:2: ", self.manager.words["STATUS"])

  def test_notifications_of_another_process_are_ignored(self):
    # Of the stand-in itself: NotifyAccess=main.
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    subprocess.run(["python3", "-c", "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"
                    f".sendto(b'STATUS=forged', '{self.folder}/notify')"], check=True)
    self.manager.run_for(0.5)
    self.assertNotIn("STATUS=forged", self.manager.received)
