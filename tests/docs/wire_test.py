"""docs/reference/wire-protocol.md has the frames, numbers and versions of the code."""

import pathlib
import re
import unittest

from tests.tidy import tree


class WireTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    root = pathlib.Path(tree.workspace_root())
    cls.header = (root / "netplugin/link/frame.h").read_text(encoding="utf-8")
    cls.frames = (root / "netplugin/link/frames.h").read_text(encoding="utf-8")
    cls.page = (root / "docs/reference/wire-protocol.md").read_text(encoding="utf-8")

  def test_every_frame_with_its_number_and_direction(self):
    enum = self.frames[self.frames.index("enum class FrameType"):]
    frames = re.findall(r"^  (k\w+) = (\d+),\s*// ([SR])>([SR]) ", enum[:enum.index("};")], re.MULTILINE)
    self.assertGreater(len(frames), 10)
    rows = re.findall(r"^\| (\d+) \| (k\w+) \| ([SR]) to ([SR]) \|", self.page, re.MULTILINE)
    self.assertEqual(rows, [(number, name, source, target) for name, number, source, target in frames])

  def test_the_version(self):
    newest = re.search(r"kWireVersion = (\d+);", self.header).group(1)
    self.assertIn(f"Release 0.3.0 speaks version {newest}", re.sub(r"\s+", " ", self.page))


if __name__ == "__main__":
  unittest.main()
