"""docs/operate/limits.md has the numbers of the code, and names tests that exist."""

import itertools
import pathlib
import re
import unittest

from tests.docs.named_tests import NAME, cases, missing
from tests.tidy import tree

ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| ([\d,]+) \| [^|]+ \| `(\S+)`: `(k\w+)` \| ([^|]+) \|$")


def value(text: str, name: str) -> int | None:
  """Of a constant in C++ that is one number; None: there is none of that name."""
  found = re.search(rf"\bconstexpr \S+ {name} = ([\d']+);", text)
  return None if found is None else int(found.group(1).replace("'", ""))


class LimitsTest(unittest.TestCase):

  def test_each_number_is_that_of_the_code(self):
    root = pathlib.Path(tree.workspace_root())
    page = (root / "docs/operate/limits.md").read_text(encoding="utf-8").splitlines()
    begin = page.index("| what | who makes it grow | at most | beyond it | place | test |")
    lines = list(itertools.takewhile(lambda line: line.startswith("|"), page[begin:]))
    self.assertGreater(len(lines), 10)
    sources = tree.read_sources(tree.workspace_root())
    known = cases(sources)
    for line in lines[2:]:  # behind the head
      row = ROW.match(line)
      self.assertIsNotNone(row, line)
      number, path, name, tests = row.groups()
      self.assertTrue(NAME.findall(tests), line)
      for test in NAME.findall(tests):
        self.assertIsNone(missing(test, "", known, sources), line)
      self.assertEqual(value((root / path).read_text(encoding="utf-8"), name), int(number.replace(",", "")), line)

  def test_a_constant_is_found_by_its_whole_name(self):
    self.assertEqual(value("  static constexpr size_t kMost = 1'024;  // why", "kMost"), 1024)
    self.assertIsNone(value("constexpr size_t kMostOfAll = 7;", "kMost"))
    self.assertIsNone(value("constexpr size_t kMost = 2 * kOther;", "kMost"))
