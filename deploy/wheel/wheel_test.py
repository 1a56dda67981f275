"""wheel.py: the same bytes from the same inputs, and a list of files that holds."""

import base64
import csv
import hashlib
import os
import pathlib
import tempfile
import unittest
import zipfile

from bazel import unittest_main
from deploy.wheel import wheel


class WheelTest(unittest.TestCase):

  def setUp(self):
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.program, self.license = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]

  def make(self, place: str) -> pathlib.Path:
    folder = self.folder / place
    folder.mkdir(parents=True)
    (folder / "module.py").write_text("x = 1\n", encoding="utf-8")
    (folder / "readme").write_text("# words\n", encoding="utf-8")
    out = folder / wheel.file_name("r2cc-x", "1.2.3")
    wheel.make(wheel.parse_arguments([
        "--name", "r2cc-x", "--summary", "does", "--console", "x=r2cc.x:main", "--release", "1.2.3", "--revision", "abc", "--epoch",
        "1700000000", "--readme", str(folder / "readme"), "--license", str(self.license), "--program", f"r2cc/bin/tool={self.program}",
        "--library", f"r2cc/lib/x.so={self.program}", "--module", f"r2cc/module.py={folder / 'module.py'}", str(out)]))
    return out

  def test_two_places_give_the_same_bytes(self):
    first = self.make("one").read_bytes()
    mask = os.umask(0o077)
    try:
      os.environ["TZ"] = "Pacific/Auckland"
      second = self.make("another/and/deeper").read_bytes()
    finally:
      os.umask(mask)
      del os.environ["TZ"]
    self.assertEqual(first, second)

  def test_the_record_lists_every_file(self):
    with zipfile.ZipFile(self.make("one")) as archive:
      rows = list(csv.reader(archive.read("r2cc_x-1.2.3.dist-info/RECORD").decode().splitlines()))
      self.assertEqual([row[0] for row in rows], archive.namelist())
      for path, digest, size in rows[:-1]:
        data = archive.read(path)
        self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode())
        self.assertEqual(int(size), len(data))
      self.assertEqual(rows[-1][1:], ["", ""])
      self.assertEqual(archive.read("r2cc_x-1.2.3.dist-info/entry_points.txt").decode(), "[console_scripts]\nx=r2cc.x:main\n")
      self.assertIn("\nName: r2cc-x\nVersion: 1.2.3\nSummary: does\n", archive.read("r2cc_x-1.2.3.dist-info/METADATA").decode())
      # Other packages add to r2cc.
      self.assertNotIn("r2cc/__init__.py", archive.namelist())
      modes = {info.filename: info.external_attr >> 16 & 0o777 for info in archive.infolist()}
      self.assertEqual((modes["r2cc/bin/tool"], modes["r2cc/lib/x.so"]), (0o755, 0o644))
