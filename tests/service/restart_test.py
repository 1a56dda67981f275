"""r2ccd started anew while jobs are attached: a stand-in for systemd keeps the socket where jobs attach, and they wait in its queue."""

import array
import os
import pathlib
import shutil
import signal
import socket
import struct
import tempfile
import time
import unittest

from bazel import unittest_main
from tests.service import manager
from tests.service import unit_file

# Nobody's in particular, and of no group that counts.
USER = "65534"
WATCHDOG_S = 10
# For so long the verdicts of a daemon that died count (kPageStaleAfter): who is back before that was never away.
PAGE_STALE_S = 2
# plan/page/attach.h: magic and version come first.
_HEAD = struct.Struct("=II")
_REPLY_HEAD = struct.Struct("=III")
_ACCEPTED = 0
_WRONG_VERSION = 2
# That the last release speaks as its newest.
_VERSION = 2
_PAGE_VERSION = 2
# Where the page's heartbeat, its newest version and its last word are (plan/page/page_layout.h).
_PAGE_HEAD = struct.Struct("=QIIQQQQ")


class Plugin:
  """A job's end of the attach socket that speaks with frozen bytes of the last release."""

  def __init__(self, path: pathlib.Path, request: bytes):
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self._socket.settimeout(manager.PATIENCE_S)
    self._socket.connect(str(path))
    self._socket.send(request)
    self.page = -1

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self._socket.close()
    if self.page >= 0:
      os.close(self.page)

  def answer(self) -> tuple[int, int]:
    """The version and the status of the daemon's answer; the page comes along."""
    data, control, _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(2 * array.array("i").itemsize))
    for _, _, value in control:
      self.page, ring = array.array("i", value)
      os.close(ring)
    _, version, status = _REPLY_HEAD.unpack_from(data)
    return version, status

  def end(self) -> None:
    """Returns when the daemon has hung up."""
    while self._socket.recv(4096):
      pass

  def page_head(self) -> tuple[int, int, float, float]:
    """The page's versions, the time of its heartbeat, and until when its last word counts; seconds of CLOCK_MONOTONIC."""
    _, version, newest, heartbeat, _, _, end_lease = _PAGE_HEAD.unpack(os.pread(self.page, _PAGE_HEAD.size, 0))
    return version, newest, heartbeat / 1e9, end_lease / 1e9


class RestartTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.unit_path, cls.r2ccd, cls.golden = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    cls.unit = unit_file.read(cls.unit_path)
    if os.geteuid() != 0:
      raise unittest.SkipTest("needs root: becomes another user, with the unit's limits")

  def setUp(self):
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-restart-", dir="/tmp")))
    self.folder.chmod(0o755)
    for name in ("run", "run-control", "state"):
      (self.folder / name).mkdir()
      shutil.chown(self.folder / name, int(USER), int(USER))
    config = self.folder / "r2ccd.textproto"
    config.write_text('node: "n0"\nlisten: "127.0.0.1:0"\nnics { name: "rail0" address: "127.9.0.1" }\n', encoding="utf-8")
    program = shutil.copy(self.r2ccd, self.folder / "r2ccd")
    command = [program, "--config", str(config), "--run_dir", str(self.folder / "run"), "--state_dir", str(self.folder / "state")]
    self.manager = self.enterContext(
        manager.Manager(unit_file.wrapped(self.unit, USER, USER, command), self.folder, WATCHDOG_S,
                        store_max=int(unit_file.last(self.unit, "FileDescriptorStoreMax"))))
    self.socket = self.folder / "run" / "attach.sock"
    self.request = (self.golden / "attach_request").read_bytes()

  def start(self) -> None:
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    self.assertTrue(self.manager.until(lambda: self.manager.store), "it has nothing kept")

  def end(self, how: int) -> None:
    self.manager.process.send_signal(how)
    self.assertTrue(self.manager.until(lambda: self.manager.process.poll() is not None))

  def plugin(self) -> Plugin:
    return self.enterContext(Plugin(self.socket, self.request))

  def test_a_plugin_of_the_last_release_is_answered_in_its_own_version(self):
    self.start()
    plugin = self.plugin()
    self.assertEqual(plugin.answer(), (_VERSION, _ACCEPTED))
    oldest, newest, _, _ = plugin.page_head()
    self.assertTrue(oldest <= _PAGE_VERSION <= newest, (oldest, newest))

  def test_a_plugin_of_an_older_release_is_refused(self):
    self.start()
    magic, version = _HEAD.unpack_from(self.request)
    self.assertEqual(version, _VERSION)
    # Without the plugin's release, which came with version 2.
    self.request = _HEAD.pack(magic, 1) + self.request[_HEAD.size:-32]
    version, status = self.plugin().answer()
    self.assertEqual(status, _WRONG_VERSION)
    self.assertGreaterEqual(version, _VERSION)

  def test_jobs_wait_in_the_queue_of_a_daemon_that_restarts(self):
    self.start()
    for how in (signal.SIGTERM, signal.SIGKILL):
      before = self.plugin()
      before.answer()
      begun = time.monotonic()
      self.end(how)
      before.end()
      _, _, heartbeat, end_lease = before.page_head()
      self.assertEqual(end_lease > 0, how == signal.SIGTERM, "only who ends on purpose says so")
      if end_lease:
        self.assertAlmostEqual(end_lease - heartbeat, 30, delta=0.001)
      waiting = [self.plugin() for _ in range(2)]
      self.start()
      for plugin in waiting:
        self.assertEqual(plugin.answer()[1], _ACCEPTED)
      away = waiting[-1].page_head()[2] - heartbeat
      print(f"{signal.Signals(how).name}: {(time.monotonic() - begun) * 1e3:.0f} ms from the signal until a job that waits is attached, "
            f"{away * 1e3:.0f} ms between the last heartbeat of the one life and the first of the other that a job sees")
      # A dead daemon's word counts for so long, and one's that ended on purpose for longer.
      self.assertLess(away, PAGE_STALE_S if how == signal.SIGKILL else end_lease - heartbeat)

  def test_a_recreated_run_directory_has_a_socket_of_its_own(self):
    self.start()
    kept = set(self.manager.store)
    self.end(signal.SIGTERM)
    self.socket.unlink()
    # As long as the old one's file is there in memory, another has another number.
    self.start()
    self.assertTrue(self.manager.until(lambda: set(self.manager.store) != kept or len(self.manager.store) == 1))
    self.assertEqual(self.plugin().answer(), (_VERSION, _ACCEPTED))

  def test_without_a_manager_that_keeps_it_the_socket_is_created_again(self):
    self.manager.store_max = 0
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)
    for how in (signal.SIGTERM, signal.SIGKILL):
      self.end(how)
      with self.assertRaises(OSError):
        self.plugin()
      self.assertTrue(self.manager.start_and_wait(), self.manager.log)
      self.assertEqual(self.plugin().answer(), (_VERSION, _ACCEPTED))
