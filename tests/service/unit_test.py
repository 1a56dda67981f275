"""The unit as systemd itself reads it: nothing unknown in it, and as little exposed as is demanded."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from tests.service import unit_file

# Tenths of systemd's points, 0 to 100. 9.2 is a unit that says nothing.
EXPOSURE_MAX = 18
EXPOSURE_WITH_RDMA_MAX = 21


class UnitTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.unit, cls.rdma, cls.sysusers, cls.tmpfiles, cls.preset = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]

  def setUp(self):
    self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.units = self.root / "etc/systemd/system"
    self.units.mkdir(parents=True)
    shutil.copy(self.unit, self.units / "r2ccd.service")
    for program in (self.root / "usr/sbin/r2ccd", self.root / "bin/kill", self.root / "usr/bin/install"):
      program.parent.mkdir(parents=True, exist_ok=True)
      program.touch()
      program.chmod(0o755)
    # What every unit hangs on, of which a bare root has none.
    for name in ("sysinit.target", "basic.target", "shutdown.target", "network.target", "multi-user.target", "system.slice", "-.slice"):
      (self.units / name).write_text(f"[Unit]\nDescription={name}\n", encoding="utf-8")

  def analyze(self, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["systemd-analyze", *arguments, f"--root={self.root}", "r2ccd.service"], capture_output=True, text=True,
                          check=False)

  def exposure(self, most: int) -> subprocess.CompletedProcess:
    return self.analyze("security", "--offline=true", "--no-pager", f"--threshold={most}")

  def add_rdma(self):
    folder = self.units / "r2ccd.service.d"
    folder.mkdir()
    shutil.copy(self.rdma, folder / "rdma.conf")

  def test_systemd_knows_every_setting(self):
    for with_rdma in (False, True):
      if with_rdma:
        self.add_rdma()
      verified = self.analyze("verify", "--man=no")
      self.assertEqual((verified.returncode, verified.stdout, verified.stderr), (0, "", ""))

  def test_an_unknown_setting_would_be_found(self):
    with open(self.units / "r2ccd.service", "a", encoding="utf-8") as file:
      file.write("[Service]\nProtectEverything=yes\n")
    self.assertIn("ProtectEverything", self.analyze("verify", "--man=no").stderr)

  def test_exposure(self):
    judged = self.exposure(EXPOSURE_MAX)
    self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
    self.assertRegex(judged.stdout, r"Overall exposure level for r2ccd\.service: \d\.\d")

  def test_exposure_with_rdma_devices(self):
    self.add_rdma()
    judged = self.exposure(EXPOSURE_WITH_RDMA_MAX)
    self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
    self.assertRegex(judged.stdout, r"PrivateDevices= ", "the drop-in is read")
    self.assertGreater(self._points(judged.stdout), self._points(self._without_rdma()))

  def test_exposure_of_a_unit_without_settings_is_refused(self):
    (self.units / "r2ccd.service").write_text("[Service]\nExecStart=/usr/sbin/r2ccd\n", encoding="utf-8")
    self.assertNotEqual(self.exposure(EXPOSURE_MAX).returncode, 0)

  def test_required_settings(self):
    settings = unit_file.read(self.unit)
    # Made anew, the run directory would be another one than containers have mounted.
    self.assertEqual(settings["RuntimeDirectoryPreserve"], ["yes"])
    self.assertEqual(settings["RuntimeDirectoryMode"], ["0755"])
    # The control socket is for the group alone.
    self.assertEqual(settings["RuntimeDirectory"], ["r2cc"])
    self.assertEqual(settings["ExecStartPre"], ["+/usr/bin/install -d -o r2ccd -g r2cc -m 0750 /run/r2cc-control"])
    self.assertEqual(settings["ReadWritePaths"], ["-/run/r2cc-control"])
    # With /proc hidden from it r2ccd cannot see whether a caller is in a container.
    self.assertNotIn(settings["ProtectProc"], (["invisible"], ["noaccess"], ["ptraceable"]))
    self.assertNotIn("ProcSubset", settings)
    # A core, or the swap, would hold the node's key.
    self.assertEqual((settings["LimitCORE"], settings["MemorySwapMax"]), (["0"], ["0"]))
    self.assertEqual(settings["StartLimitIntervalSec"], ["0"])
    # Of a job in a container the daemon needs the true uid.
    self.assertNotIn("PrivateUsers", settings)
    self.assertNotIn("RestrictRealtime", settings)

  def test_user_group_and_directories_are_made(self):
    if os.geteuid() != 0:
      self.skipTest("needs root: gives directories to another user")
    etc = self.root / "etc"
    subprocess.run(["systemd-sysusers", f"--root={self.root}", self.sysusers], check=True, capture_output=True)
    user = next(line.split(":") for line in (etc / "passwd").read_text(encoding="ascii").splitlines() if line.startswith("r2ccd:"))
    groups = {line.split(":")[0]: line.split(":")[2] for line in (etc / "group").read_text(encoding="ascii").splitlines()}
    self.assertEqual(user[3], groups["r2cc"], "the group of the unit, whose members may steer, is the user's own")
    self.assertTrue(user[6].endswith("nologin"))
    settings = unit_file.read(self.unit)
    self.assertEqual((settings["User"], settings["Group"]), (["r2ccd"], ["r2cc"]))
    subprocess.run(["systemd-tmpfiles", f"--root={self.root}", "--create", self.tmpfiles], check=True, capture_output=True)
    for name, mode in (("run/r2cc", unit_file.last(settings, "RuntimeDirectoryMode")), ("run/r2cc-control", "0750"),
                       ("var/lib/r2cc", unit_file.last(settings, "StateDirectoryMode"))):
      about = (self.root / name).stat()
      self.assertEqual((str(about.st_uid), str(about.st_gid), f"{about.st_mode & 0o777:04o}"), (user[2], user[3], mode), name)

  def test_the_preset_names_the_unit(self):
    self.assertEqual(self.preset.read_text(encoding="ascii"), f"enable {self.unit.name}\n")

  def _without_rdma(self) -> str:
    shutil.rmtree(self.units / "r2ccd.service.d")
    return self.exposure(EXPOSURE_MAX).stdout

  @staticmethod
  def _points(text: str) -> float:
    return float(re.search(r"Overall exposure level for r2ccd\.service: (\d+\.\d)", text).group(1))
