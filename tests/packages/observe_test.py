"""Tensor taps in a bare Debian 12 that has Python and no more: from the Debian package, and from the wheel."""

import os
import pathlib
import re
import shutil
import tempfile
import unittest

from bazel import unittest_main
from tests.packages import debian_root

PACKAGES = "usr/lib/python3/dist-packages"
FIRST = "usr/share/doc/r2cc-observe/examples/first.py"
# An ordinary user: shared memory, and the processes that are searched for a run, are its own.
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class ObserveTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = debian_root.missing_feature()
    if reason:
      raise unittest.SkipTest(reason)
    cls.deb, cls.wheel, cls.first = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    debian_root.leave_the_machine()

  def setUp(self):
    self.root = debian_root.DebianRoot(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-deb-", dir="/tmp"))))
    self.root.path.chmod(0o755)
    self.addCleanup(self.root.close)
    self.assertNotEqual(self.root.run("python3", "-c", "import numpy", check=False).returncode, 0, "the root is not bare")

  def check_first(self, script: str) -> None:
    """The example ends well for an ordinary user, and showed the gap that it makes on purpose."""
    shown = self.root.run(*NOBODY, "python3", script).stdout
    self.assertRegex(shown, r"step 2, request \[102\]: second = \[-2\.0, ")
    self.assertRegex(shown, r"\d+ of 100 steps are whole, [1-9]\d* are known to be absent\n")
    self.assertTrue(shown.endswith("producer and reader agree on every count\n"), shown)

  def check_version(self, *command: str) -> None:
    release = self.wheel.name.split("-")[1]
    self.assertRegex(self.root.run(*command, "--version").stdout,
                     rf"^r2cc-observe {re.escape(release)} \(revision (?!unknown).+\)\nprotocols: record 1\n$")

  def test_the_package(self):
    before = self.root.files()
    shutil.copy(self.deb, self.root.path / "tmp")
    self.root.run("dpkg", "--install", f"/tmp/{self.deb.name}")
    os.unlink(self.root.path / "tmp" / self.deb.name)
    self.assertTrue(list((self.root.path / PACKAGES / "r2cc/observe/__pycache__").iterdir()))
    self.assertFalse((self.root.path / PACKAGES / "r2cc/__init__.py").exists(), "other packages add to r2cc")
    self.assertEqual((self.root.path / FIRST).read_bytes(), self.first.read_bytes())
    self.check_first("/" + FIRST)
    self.check_version("r2cc-observe")
    self.assertTrue(self.root.run("r2cc-observe", "ls").stdout.startswith("RUN "))
    self.root.run("dpkg", "--purge", "r2cc-observe")
    after = self.root.files()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    self.assertEqual(changed - {"/var/log/dpkg.log"}, set())

  def test_the_wheel(self):
    """Unpacked, which is all that its installation is where there is no pip."""
    shutil.copy(self.wheel, self.root.path / "tmp")
    shutil.copy(self.first, self.root.path / "tmp")
    folder = self.root.run("python3", "-c", "import site; print(site.getsitepackages()[0])").stdout.strip()
    self.root.run("python3", "-m", "zipfile", "-e", f"/tmp/{self.wheel.name}", folder)
    self.check_first("/tmp/first.py")
    self.check_version("python3", "-m", "r2cc.observe")
