"""Each `file:function`, each file and each test that the pages of docs/internals name exists."""

import pathlib
import re
import unittest

from tests.docs.named_tests import cases, missing
from tests.tidy import tree

STEP = re.compile(r"`([\w./-]+\.(?:cc|h|py|cu)):([\w()]+)`")
FOLDERS = "base|client|daemon|deploy|health|nccl|netplugin|plan|proto|testing|tests|tools"
FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.(?:cc|h|py|bzl|proto|cu))`")


def has_function(text: str, name: str) -> bool:
  """`text` declares or defines it, or calls it as its own; a call of an object's is none."""
  text = re.sub(r"//[^\n]*", "", text)
  return re.search(rf"(?:(?<=::)|(?<![.>\w:])){re.escape(name)}\s*\(", text) is not None


class TourTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.root = pathlib.Path(tree.workspace_root())
    cls.pages = [cls.root / "ARCHITECTURE.md", *sorted((cls.root / "docs/internals").glob("**/*.md"))]

  def test_every_function_that_a_page_names_exists(self):
    missing = []
    for page in self.pages:
      for path, name in STEP.findall(page.read_text(encoding="utf-8")):
        file = self.root / path
        if not file.is_file():
          missing.append(f"{page.name}: there is no {path}")
        elif not has_function(file.read_text(encoding="utf-8"), name):
          missing.append(f"{page.name}: {path} has no {name}")
    self.assertEqual(missing, [])

  def test_every_file_that_a_page_names_exists(self):
    missing = [f"{page.name}: {path}" for page in self.pages for path in FILE.findall(page.read_text(encoding="utf-8"))
               if not (self.root / path).is_file()]
    self.assertEqual(missing, [])

  def test_each_point_of_the_contract_names_tests_that_exist(self):
    page = (self.root / "docs/internals/lossless-contract.md").read_text(encoding="utf-8")
    points = re.findall(r"^## (\d+)\. ", page, re.MULTILINE)
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    self.assertEqual([number for number, _ in rows], points)
    sources = tree.read_sources(str(self.root))
    known = cases(sources)
    for number, tests in rows:
      names = re.findall(r"`([^`]+)`", tests)
      self.assertTrue(names, number)
      for name in names:
        self.assertIsNone(missing(name, "", known, sources), number)

  def test_the_tour_has_steps(self):
    tour = (self.root / "docs/internals/tour.md").read_text(encoding="utf-8")
    for heading in ("One message", "One lost rail", "One drain", "One AllReduce"):
      section = tour[tour.index(f"\n## {heading}\n"):]
      section = section[:section.find("\n## ", 4)] if "\n## " in section[4:] else section
      self.assertGreater(len(STEP.findall(section)), 5, heading)

  def test_recognises_functions(self):
    text = "void Peer::Submit(int a) {\n  other_->Move(1);\n  session.Post(2);\n  Own();\n  // Commented()\n}\n"
    self.assertTrue(has_function(text, "Submit"))
    self.assertTrue(has_function(text, "Own"))
    for name in ("Move", "Post", "Commented", "Sub"):
      self.assertFalse(has_function(text, name), name)


if __name__ == "__main__":
  unittest.main()
