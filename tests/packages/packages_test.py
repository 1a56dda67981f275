"""The packages in a bare Debian 12: installed, run as the unit does, upgraded, downgraded, purged. systemd does not run there: a stand-in
speaks its protocol (tests/service/manager.py). The unit's command line, user and limits are read from the unit that was installed."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from tests.packages import debian_root
from tests.service import manager
from tests.service import unit_file

UNIT = "usr/lib/systemd/system/r2ccd.service"
ENABLED = "etc/systemd/system/multi-user.target.wants/r2ccd.service"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
NEXT = "0.99.0"
# dpkg's log, and what useradd keeps of the files before its last change.
BOOKS = re.compile(r"/var/log/dpkg\.log|/etc/(passwd|group|shadow|gshadow)-")


class PackagesTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = debian_root.missing_feature()
    if reason:
      raise unittest.SkipTest(reason)
    cls.debs = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    debian_root.leave_the_machine()

  def setUp(self):
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.root = debian_root.DebianRoot(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-deb-", dir="/tmp"))))
    self.root.path.chmod(0o755)
    self.addCleanup(self.root.close)
    self.manager = None
    self.addCleanup(self.stop)

  def install(self, release_is_next: bool) -> str:
    """All six, of this release or the next one; what dpkg said."""
    place = self.root.path / "tmp/debs"
    place.mkdir()
    for deb in self.debs:
      if (f"_{NEXT}_" in deb.name) == release_is_next:
        shutil.copy(deb, place)
    names = sorted(f"/tmp/debs/{deb.name}" for deb in place.iterdir())
    self.assertEqual(len(names), 6)
    # A question about a configuration file would wait for ever, and fail: there is no terminal.
    output = self.root.run("dpkg", "--install", "--force-downgrade", *names)
    shutil.rmtree(place)
    return output.stdout + output.stderr

  def purge(self) -> None:
    self.root.run("dpkg", "--purge", "r2cc-drill", "r2cc-observe", "r2cc-perf", "r2ccctl", "r2ccd", "libnccl-net-r2cc")

  def start(self) -> None:
    """r2ccd as the unit that is installed says, told by a stand-in for systemd where to report."""
    unit = unit_file.read(self.root.path / UNIT)
    users = {line.split(":")[0]: line.split(":") for line in (self.root.path / "etc/passwd").read_text(encoding="ascii").splitlines()}
    groups = {line.split(":")[0]: line.split(":")[2] for line in (self.root.path / "etc/group").read_text(encoding="ascii").splitlines()}
    command = unit_file.wrapped(unit, users[unit_file.last(unit, "User")][2], groups[unit_file.last(unit, "Group")],
                                unit_file.last(unit, "ExecStart").split())
    folder = self.root.path / "run/manager"
    folder.mkdir(exist_ok=True)
    self.manager = manager.Manager(self.root.command(*command), folder, 0, {"NOTIFY_SOCKET": "/run/manager/notify"})
    self.assertTrue(self.manager.start_and_wait(), self.manager.log)

  def stop(self) -> None:
    if self.manager is None:
      return
    if self.manager.process.poll() is None:
      self.manager.process.send_signal(signal.SIGTERM)
      self.assertTrue(self.manager.until(lambda: self.manager.process.poll() is not None), self.manager.log)
      self.assertEqual(self.manager.process.returncode, 0, self.manager.log)
    self.manager.__exit__()
    shutil.rmtree(self.root.path / "run/manager")
    self.manager = None

  def ask(self, *words: str) -> dict:
    return json.loads(self.root.run("r2ccctl", "-o", "json", *words).stdout)

  def left(self, before: dict[str, str]) -> dict[str, str]:
    """What is another than it was, without the books."""
    after = self.root.files()
    changed = {path: f"{before.get(path)} => {after.get(path)}" for path in before.keys() | after.keys()
               if before.get(path) != after.get(path)}
    return {path: change for path, change in changed.items() if not BOOKS.fullmatch(path)}

  def test_install_run_and_purge_leave_nothing(self):
    before = self.root.files()
    users, groups = [(self.root.path / "etc" / name).read_text(encoding="ascii") for name in ("passwd", "group")]
    self.install(release_is_next=False)
    path = self.root.path
    self.assertEqual(os.path.basename(os.readlink(path / ENABLED)), "r2ccd.service", "the preset counts")
    self.assertEqual(os.readlink(path / LIBRARIES / "librccl-net-r2cc.so"), "libnccl-net-r2cc.so")
    for library in ("libnccl-profiler-r2cc.so", "libnccl-tuner-r2cc.so", "libr2cc-nccl.so"):
      self.assertTrue((path / LIBRARIES / library).is_file(), library)
    self.assertFalse((path / "etc/nccl.conf").exists())
    self.assertTrue((path / "usr/share/doc/r2ccd/docs/operate/diagnose.md").is_file(), "what doctor and the alarms refer to")
    self.start()
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{self.manager.process.pid}/status").read_text(
        encoding="ascii").splitlines())
    self.assertEqual(int(status["CapEff"], 16), 0)
    self.assertNotEqual(status["Uid"].split()[0], "0")
    self.assertTrue(self.root.run("r2ccctl", "health").stdout.startswith("ok: r2ccd of node "))
    self.assertTrue(self.root.run("r2cc-try", "--version").stdout.startswith("r2cc-try "))
    # The drill starts daemons and jobs of its own, of what is installed, for any user.
    drill = self.root.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "r2cc-drill", "--quick", "--json")
    result = json.loads(drill.stdout.splitlines()[-1])
    self.assertEqual((result["pass"], result["wrong_elements"]), (True, 0), result)
    self.stop()
    self.purge()
    self.assertEqual(self.left(before), {})
    self.assertEqual([(path / "etc" / name).read_text(encoding="ascii") for name in ("passwd", "group")], [users, groups])

  def test_the_unit_runs_only_what_the_package_depends_on(self):
    """A root that has a program for another reason hides a missing dependency: `systemctl reload` failed on a bare Debian."""
    self.install(release_is_next=False)
    unit = (self.root.path / UNIT).read_text(encoding="utf-8")
    programs = set(re.findall(r"^Exec\w+=[-+!@:]*(/\S+)", unit, flags=re.MULTILINE))
    self.assertLessEqual({"/usr/sbin/r2ccd", "/bin/kill", "/usr/bin/install"}, programs)
    wanted = self.root.run("dpkg-query", "--show", "--showformat", "${Depends}", "r2ccd").stdout
    allowed = {"r2ccd"} | {word.split()[0] for word in wanted.split(", ")}
    for program in programs:
      owner = self.root.run("dpkg", "--search", program).stdout.partition(":")[0]
      essential = self.root.run("dpkg-query", "--show", "--showformat", "${Essential}", owner).stdout == "yes"
      self.assertTrue(essential or owner in allowed, f"{program} is of {owner}, and r2ccd depends on {wanted}")

  def test_upgrade_and_downgrade_keep_settings_and_files_of_the_operator(self):
    before = self.root.files()
    self.install(release_is_next=False)
    path = self.root.path
    config = path / "etc/r2cc/r2ccd.textproto"
    mine = 'node: "n0"\nnics { name: "rail0" address: "127.9.0.1" }\nnics { name: "rail1" address: "127.9.0.2" }\n'
    config.write_text(mine, encoding="utf-8")
    (path / "etc/r2cc/tls").mkdir()
    (path / "etc/r2cc/tls/ca.crt").write_text("an operator's\n", encoding="utf-8")
    (path / "etc/nccl.conf").write_text("NCCL_DEBUG=WARN\n", encoding="utf-8")
    self.start()
    self.root.run("r2ccctl", "nic", "drain", "n0/rail1")
    release = self.ask("status")["release"]

    running = self.manager.process.pid
    self.install(release_is_next=True)
    self.assertEqual(self.manager.process.poll(), None, "nothing is stopped before the new one is there")
    self.assertEqual(self.ask("status")["release"], release)
    self.assertIn(f"r2ccd {NEXT} (revision next)", self.root.run("r2ccd", "--version").stdout)
    self.assertEqual(config.read_text(encoding="utf-8"), mine)
    self.stop()
    self.start()
    self.assertNotEqual(self.manager.process.pid, running)
    self.assertEqual(self.ask("status")["release"], NEXT)
    self.assertEqual(self.drained(), ["rail1"])
    self.stop()

    # A later release may have written what this one cannot read.
    state = path / "var/lib/r2cc/state"
    newer = state.read_text(encoding="utf-8").replace("version: 1", "version: 2") + "what_is_new: 5\n"
    state.write_text(newer, encoding="utf-8")
    self.install(release_is_next=False)
    self.assertEqual(state.read_text(encoding="utf-8"), newer)
    self.start()
    self.assertEqual(self.ask("status")["release"], release)
    self.assertIn("written in format 2 by another release", self.manager.log)
    self.assertEqual((path / "var/lib/r2cc/state.damaged").read_text(encoding="utf-8"), newer, "it is set aside, not lost")
    self.stop()
    self.purge()
    self.assertEqual(self.left(before).keys(), {"/etc/nccl.conf", "/etc/r2cc", "/etc/r2cc/tls", "/etc/r2cc/tls/ca.crt"},
                     "what an operator made, and nothing else")
    self.assertEqual((path / "etc/nccl.conf").read_text(encoding="utf-8"), "NCCL_DEBUG=WARN\n")

  def drained(self) -> list[str]:
    nodes = self.ask("nic", "list")["nodes"]
    return [nic["name"] for node in nodes for nic in node["nics"] if nic.get("drained") or nic.get("state") == "DRAINED"]

  def test_an_operators_presets_win(self):
    presets = self.root.path / "etc/systemd/system-preset"
    presets.mkdir(parents=True, exist_ok=True)
    (presets / "00-mine.preset").write_text("disable r2ccd.service\n", encoding="ascii")
    self.install(release_is_next=False)
    self.assertFalse(os.path.lexists(self.root.path / ENABLED))
    self.install(release_is_next=True)
    self.assertFalse(os.path.lexists(self.root.path / ENABLED), "an upgrade does not ask again")

  def test_a_purge_leaves_nobody_a_key(self):
    """The next package's user or group would have the numbers of those that went, and with them the key."""
    self.install(release_is_next=False)
    users = (self.root.path / "etc/passwd").read_text(encoding="ascii")
    uid, gid = next(line.split(":")[2:4] for line in users.splitlines() if line.startswith("r2ccd:"))
    key = self.root.path / "etc/r2cc/tls/node.key"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_text("secret", encoding="ascii")
    os.chown(key, int(uid), int(gid))
    self.purge()
    self.assertEqual(key.read_text(encoding="ascii"), "secret")
    self.assertIn("r2ccd:", (self.root.path / "etc/passwd").read_text(encoding="ascii"))
    self.assertIn("r2cc:", (self.root.path / "etc/group").read_text(encoding="ascii"))

  def test_removed_and_not_purged_keeps_state_and_configuration(self):
    before = self.root.files()
    self.install(release_is_next=False)
    (self.root.path / "var/lib/r2cc/state").write_text("", encoding="utf-8")
    self.root.run("dpkg", "--remove", "r2cc-drill", "r2ccd")
    self.assertFalse((self.root.path / "usr/sbin/r2ccd").exists())
    for kept in ("/var/lib/r2cc/state", "/etc/r2cc/r2ccd.textproto"):
      self.assertIn(kept, self.left(before), "it is there, and seen by what looks for leftovers")
