"""Each attack in docs/operate/attacks.md names a test, each test that is named there or in security.md exists, and no step is too late."""

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
    folder = pathlib.Path(tree.workspace_root()) / "docs/operate"
    cls.attacks = (folder / "attacks.md").read_text(encoding="utf-8").splitlines()
    cls.lines = (folder / "security.md").read_text(encoding="utf-8").splitlines()

  def test_each_attack_names_a_test_that_exists(self):
    begin = self.attacks.index("| attack | what stops it | test |")
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in itertools.takewhile(lambda line: line.startswith("|"), self.attacks[begin:])]
    self.assertGreater(len(rows), 20)
    suite = ""
    for attack, stops, test in rows[2:]:  # behind the head
      names = NAME.findall(test)
      self.assertTrue(stops and names, attack)
      self.assertNotIn("the same", test, attack)  # a row that is put in between would make it another test
      for name in names:
        self.assertIsNone(missing(name, suite, self.known, self.sources), attack)
        if not name.startswith("."):
          suite = name.partition(".")[0]

  def test_each_test_that_the_text_names_exists(self):
    names = [name for line in self.lines if not line.startswith("|") for name in NAME.findall(line) if re.fullmatch(r"\w+Test\.\w+", name)]
    self.assertGreater(len(names), 2)
    for name in names:
      self.assertIsNone(missing(name, "", self.known, self.sources))

  def test_the_stolen_certificate_is_noted_before_it_is_overwritten(self):
    section = "\n".join(itertools.takewhile(lambda line: not line.startswith("## "), self.lines[self.lines.index("## A stolen key") + 1:]))
    steps = ("    cp -a r2cc-ca/node1 ", "-fingerprint -sha256 >", "    r2ccctl certs issue node1\n", "chown r2ccd: ",
             "chmod 644 /etc/r2cc/tls/refused", "--certs node1.stolen status")
    places = [section.find(step) for step in steps]
    self.assertNotIn(-1, places)
    self.assertEqual(places, sorted(places))

  def test_missing_names_are_found(self):
    self.assertEqual(missing("NoSuchTest.Case", "", self.known, self.sources), "no suite NoSuchTest")
    self.assertEqual(missing(".NoSuchCase", "RebootTest", self.known, self.sources), "no case RebootTest.NoSuchCase")
    self.assertEqual(missing("//tests/docs:no_such_test", "", self.known, self.sources), "no target //tests/docs:no_such_test")
    self.assertEqual(missing("Story::NoSuchFunction", "", self.known, self.sources), "no function Story::NoSuchFunction")
