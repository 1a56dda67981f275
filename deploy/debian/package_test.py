"""package.py: the same bytes from the same inputs, and what it puts where."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from deploy.debian import elf_stamp
from deploy.debian import package

EPOCH = 1_700_000_000


class PackageTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.program, cls.copyright, cls.unit, cls.control = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]

  def setUp(self):
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

  def make(self, place: str, *more: str) -> pathlib.Path:
    """A package with one of each kind, made in `place`."""
    folder = self.folder / place
    folder.mkdir(parents=True)
    (folder / "control").write_text("Package: tool\nSection: admin\nPriority: optional\nDepends: @libraries@, other (= @version@)\n"
                                    "Description: a tool\n It does.\n", encoding="utf-8")
    (folder / "text").write_text("words\n", encoding="utf-8")
    (folder / "script").write_text("#!/bin/sh\n", encoding="utf-8")
    out = folder / "tool.deb"
    package.make(package.parse_arguments([
        "--control", str(folder / "control"), "--release", "1.2.3", "--revision", "abc", "--epoch", str(EPOCH),
        "--copyright", str(self.copyright), "--program", f"/usr/bin/tool={self.program}", "--file", f"/etc/tool.conf={folder / 'text'}",
        "--gzip", f"/usr/share/man/man1/tool.1.gz={folder / 'text'}", "--link", "/usr/lib/tool/link=../../bin/tool",
        "--directory", "/etc/tool.d", "--script", f"postinst={folder / 'script'}", "--executable", f"/usr/bin/shell={folder / 'script'}",
        "--release-module", "/usr/lib/tool/release.py", *more, str(out)]))
    return out

  def field(self, deb: pathlib.Path, name: str) -> str:
    return subprocess.run(["dpkg-deb", "-f", deb, name], check=True, capture_output=True, text=True).stdout.strip()

  def test_two_places_give_the_same_bytes(self):
    first = self.make("one").read_bytes()
    self.enterContext(tempfile.TemporaryDirectory(dir=self.folder))
    # Another mask, another zone, another time, another length of the path.
    old = os.umask(0o077)
    try:
      os.environ["TZ"] = "Pacific/Auckland"
      second = self.make("another/and/deeper").read_bytes()
    finally:
      os.umask(old)
      del os.environ["TZ"]
    self.assertEqual(first, second)

  def test_the_package_depends_on_what_its_unit_calls(self):
    calls = set(re.findall(r"^Exec\w+=[-@:+!]*(\S+)", self.unit.read_text(encoding="utf-8"), re.MULTILINE)) - {"/usr/sbin/r2ccd"}
    depends = re.search(r"^Depends: (.*)$", self.control.read_text(encoding="utf-8"), re.MULTILINE).group(1)
    names = {entry.split()[0] for entry in depends.split(", ")}
    self.assertIn("/bin/kill", calls)
    for program in calls:
      owner = subprocess.run(["dpkg", "-S", program], check=True, capture_output=True, text=True).stdout.partition(":")[0]
      essential = subprocess.run(["dpkg-query", "-W", "-f=${Essential}", owner], check=True, capture_output=True, text=True).stdout
      self.assertTrue(owner in names or essential == "yes", f"{program} is of {owner}, and Depends has {sorted(names)}")

  def test_another_release_gives_other_bytes(self):
    self.assertNotEqual(self.make("one").read_bytes(), self.make("two", "--directory", "/var/lib/tool").read_bytes())

  def test_lists_its_files(self):
    deb = self.make("one")
    listed = subprocess.run(["dpkg-deb", "-c", deb], check=True, capture_output=True, text=True, env={**os.environ, "TZ": "UTC"}).stdout
    for line in ("-rwxr-xr-x root/root", "-rw-r--r-- root/root", "./usr/lib/tool/link -> ../../bin/tool", "./etc/tool.d/",
                 "./usr/share/doc/tool/changelog.gz", "./usr/share/doc/tool/copyright"):
      self.assertIn(line, listed)
    self.assertEqual({line.split()[3] for line in listed.splitlines()}, {"2023-11-14"})
    self.assertEqual(self.field(deb, "Version"), "1.2.3")
    self.assertRegex(self.field(deb, "Depends"), r"^libc6 \(>= 2\.\d+\), libgcc-s1, other \(= 1\.2\.3\)$")
    out = self.folder / "unpacked"
    subprocess.run(["dpkg-deb", "-R", deb, out], check=True)
    self.assertEqual((out / "DEBIAN/conffiles").read_text(encoding="utf-8"), "/etc/tool.conf\n")
    self.assertEqual((out / "usr/lib/tool/release.py").read_text(encoding="utf-8"), 'RELEASE = "1.2.3"\nREVISION = "abc"\n')
    self.assertIn("tool 1.2.3 (revision abc)", subprocess.run([out / "usr/bin/tool", "--version"], check=True, capture_output=True,
                                                              text=True).stdout.replace(self.program.name, "tool"))
    subprocess.run(["md5sum", "--quiet", "-c", "DEBIAN/md5sums"], cwd=out, check=True)

  def test_mistakes_are_named(self):
    for more, wrong in ((("--directory", "etc"), "no absolute path"), (("--directory", "/a/../b"), "no absolute path"),
                        (("--directory", "/etc/tool.conf"), "given twice"), (("--link", "/a"), "no PATH=FILE")):
      with self.assertRaisesRegex(package.PackageError, wrong):
        self.make("-".join(more).replace("/", "_"), *more)
    with self.assertRaises(elf_stamp.StampError):
      self.make("bad", "--program", "/usr/bin/true=/bin/true")

  def test_the_revision_is_that_of_the_workspace_status(self):
    self.assertEqual(package.revision_of("BUILD_HOST x\nSTABLE_R2CC_REVISION 0123-modified\n"), "0123-modified")
    with self.assertRaises(package.PackageError):
      package.revision_of("BUILD_HOST x\n")
