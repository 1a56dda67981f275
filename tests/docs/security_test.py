"""Each attack in docs/operate/security.md names a test, and each test that is named there exists."""

import itertools
import pathlib
import re
import unittest

from tests.docs.named_tests import NAME, cases, missing
from tests.tidy import tree

class SecurityTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.sources = tree.read_sources(tree.workspace_root())
    cls.known = cases(cls.sources)
    cls.lines = (pathlib.Path(tree.workspace_root()) / "docs/operate/security.md").read_text(encoding="utf-8").splitlines()

  def test_each_attack_names_a_test_that_exists(self):
    begin = self.lines.index("| attack | what stops it | test |")
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in itertools.takewhile(lambda line: line.startswith("|"), self.lines[begin:])]
    self.assertGreater(len(rows), 20)
    suite = ""
    for attack, stops, test in rows[2:]:  # behind the head
      names = NAME.findall(test)
      self.assertTrue(stops and (names or test == "the same"), attack)
      for name in names:
        self.assertIsNone(missing(name, suite, self.known, self.sources), attack)
        if not name.startswith("."):
          suite = name.partition(".")[0]

  def test_each_test_that_the_text_names_exists(self):
    names = [name for line in self.lines if not line.startswith("|") for name in NAME.findall(line) if re.fullmatch(r"\w+Test\.\w+", name)]
    self.assertGreater(len(names), 2)
    for name in names:
      self.assertIsNone(missing(name, "", self.known, self.sources))

  def test_what_is_not_there_is_missed(self):
    self.assertEqual(missing("NoSuchTest.Case", "", self.known, self.sources), "no suite NoSuchTest")
    self.assertEqual(missing(".NoSuchCase", "RebootTest", self.known, self.sources), "no case RebootTest.NoSuchCase")
    self.assertEqual(missing("//tests/docs:no_such_test", "", self.known, self.sources), "no target //tests/docs:no_such_test")
    self.assertEqual(missing("Story::NoSuchFunction", "", self.known, self.sources), "no function Story::NoSuchFunction")
