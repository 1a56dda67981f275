"""The RPMs: what is in them and what they ask for; installed into a bare root, installed over themselves, and erased.

That root is Debian's, which has systemd but not RHEL's packages. So this shows files and scripts, and no RHEL.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from tests.packages import debian_root

ENABLED = "etc/systemd/system/multi-user.target.wants/r2ccd.service"


def ask(rpm: pathlib.Path, *words: str) -> list[str]:
  return subprocess.run(["rpm", "-qp", "--nosignature", *words, rpm], check=True, capture_output=True, text=True).stdout.splitlines()


class RpmTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    if shutil.which("rpm") is None:
      raise unittest.SkipTest("needs rpm: reads and installs packages")
    cls.epoch, *paths = unittest_main.test_args()
    cls.maker, cls.deb, *rpms = [pathlib.Path(path).resolve() for path in paths]
    cls.rpms = {rpm.name.rsplit("-", 2)[0]: rpm for rpm in rpms}

  def test_each_file_is_where_rhel_looks_for_it(self):
    self.assertEqual(set(self.rpms), {"libnccl-net-r2cc", "r2cc-perf", "r2ccctl", "r2ccd"})
    files = {name: set(ask(rpm, "-l")) for name, rpm in self.rpms.items()}
    for name, wanted in {
        "libnccl-net-r2cc": ("/usr/lib64/libnccl-net-r2cc.so", "/usr/lib64/libnccl-profiler-r2cc.so", "/usr/lib64/libnccl-tuner-r2cc.so",
                             "/usr/share/man/man7/libnccl-net-r2cc.7.gz"),
        "r2cc-perf": ("/usr/bin/r2cc-perf",),
        "r2ccctl": ("/usr/bin/r2ccctl", "/usr/share/zsh/site-functions/_r2ccctl", "/usr/share/bash-completion/completions/r2ccctl"),
        "r2ccd": ("/usr/sbin/r2ccd", "/usr/lib/systemd/system/r2ccd.service", "/usr/lib/sysusers.d/r2ccd.conf", "/etc/r2cc/r2ccd.d",
                  "/etc/r2cc/r2ccd.textproto", "/usr/share/doc/r2ccd/docs/operate/diagnose.md")}.items():
      self.assertLessEqual(set(wanted), files[name])
    everything = set().union(*files.values())
    self.assertEqual([file for file in everything if "x86_64-linux-gnu" in file or "lintian" in file or "Debian" in file], [])
    # Directories of the distribution are nobody's here: two packages of one directory would quarrel about its mode.
    self.assertTrue(everything.isdisjoint({"/usr", "/usr/bin", "/usr/lib64", "/etc", "/usr/share/doc"}))
    self.assertEqual(ask(self.rpms["r2ccd"], "-c"), ["/etc/r2cc/r2ccd.textproto"])
    modes = {line.split()[-1]: line.split()[0] for line in ask(self.rpms["r2ccd"], "-l", "-v")}
    self.assertEqual((modes["/usr/sbin/r2ccd"], modes["/etc/r2cc/r2ccd.textproto"], modes["/etc/r2cc"]),
                     ("-rwxr-xr-x", "-rw-r--r--", "drwxr-xr-x"))

  def test_they_ask_for_no_glibc_newer_than_that_of_rhel_9(self):
    for name, rpm in self.rpms.items():
      requires = ask(rpm, "--requires")
      versions = [tuple(map(int, line.partition("GLIBC_")[2].partition(")")[0].split("."))) for line in requires if "(GLIBC_" in line]
      self.assertTrue(versions, f"{name}: its libraries are not found out")
      self.assertLessEqual(max(versions), (2, 34), name)
    self.assertLessEqual({"systemd", "shadow-utils", "util-linux", "coreutils"}, set(ask(self.rpms["r2ccd"], "--requires")))

  def test_made_again_it_is_the_same(self):
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    environment = {"PATH": os.environ["PATH"], "TZ": "Pacific/Auckland", "HOME": str(folder)}
    subprocess.run([self.maker, "--epoch", self.epoch, self.deb, folder / "again.rpm"], check=True, env=environment, umask=0o077)
    self.assertEqual((folder / "again.rpm").read_bytes(), self.rpms["libnccl-net-r2cc"].read_bytes())

  def test_installed_upgraded_and_erased(self):
    reason = debian_root.missing_feature()
    if reason:
      self.skipTest(reason)
    debian_root.leave_the_machine()
    root = debian_root.DebianRoot(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-rpm-", dir="/tmp"))))
    self.addCleanup(root.close)
    root.path.chmod(0o755)
    config = root.path / "etc/r2cc/r2ccd.textproto"

    def rpm(*words: str) -> None:
      done = subprocess.run(["rpm", "--root", root.path, "--force-debian", "--nodeps", "--nosignature", *words], check=False,
                            capture_output=True, text=True)
      self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
      self.assertNotIn("scriptlet failed", done.stderr)

    rpm("--install", *map(str, self.rpms.values()))
    self.assertEqual(os.path.basename(os.readlink(root.path / ENABLED)), "r2ccd.service", "the preset counts")
    account = root.run("getent", "passwd", "r2ccd").stdout
    self.assertIn("/var/lib/r2cc", account)
    self.assertEqual(root.run("stat", "--format", "%U:%G %a", "/var/lib/r2cc").stdout.strip(), "r2ccd:r2cc 750")
    self.assertEqual(root.run("r2ccd", "--config", "/etc/r2cc/r2ccd.textproto", "--check_config").returncode, 0)

    config.write_text('node: "mine"\n', encoding="utf-8")
    (root.path / ENABLED).unlink()
    rpm("--upgrade", "--replacepkgs", "--oldpackage", str(self.rpms["r2ccd"]))
    self.assertEqual(config.read_text(encoding="utf-8"), 'node: "mine"\n')
    self.assertFalse(os.path.lexists(root.path / ENABLED), "the operator has decided")

    rpm("--erase", "r2ccd")
    self.assertFalse((root.path / "usr/sbin/r2ccd").exists())
    self.assertFalse(os.path.lexists(root.path / ENABLED))
    self.assertEqual((root.path / "etc/r2cc/r2ccd.textproto.rpmsave").read_text(encoding="utf-8"), 'node: "mine"\n')
    self.assertEqual(root.run("getent", "passwd", "r2ccd").stdout, account, "its number may own files")
