"""Commits since this rule have subjects of at most 72 characters, in the imperative."""

import pathlib
import subprocess
import unittest

from tests.tidy import subjects
from tests.tidy import tree

# The commit that added this file is the first one that is not judged.
RULE = "tests/tidy/subjects.py"


def git(*arguments: str) -> str:
  root = tree.workspace_root()
  command = ["git", "-c", f"safe.directory={root}", "-C", root, *arguments]
  return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class SubjectsTest(unittest.TestCase):

  def test_commits_since_the_rule(self):
    if not (pathlib.Path(tree.workspace_root()) / ".git").exists():
      self.skipTest("needs git: this tree has no history")
    added = git("log", "--diff-filter=A", "--format=%H", "--", RULE).split()
    if not added:
      self.skipTest("needs the history since " + RULE)
    lines = git("log", "--no-merges", "--format=%h%x09%s", f"{added[-1]}..HEAD").splitlines()
    found = [(commit, subjects.wrong(subject)) for commit, _, subject in (line.partition("\t") for line in lines)]
    self.assertEqual([f"{commit}: {message}" for commit, message in found if message is not None], [])
    print(f"{len(lines)} commits")

  def test_good_subjects(self):
    for subject in ("docs: shorten README", "base/core: read interfaces with other names", "netplugin/link, tests: add a ratchet",
                    'Revert "docs: shorten README"', "client: pass the address on", "client: heed -o json", "Add a page"):
      self.assertIsNone(subjects.wrong(subject), subject)

  def test_bad_subjects(self):
    for subject in ("docs: shortened README", "docs: shortening README", "docs: shortens README", "tests: what two tests share",
                    "daemon: the gate is pure", "docs: shorten README.", "docs: add " + "x" * 63, "docs: 3 pages", "plan: no copy"):
      self.assertIsNotNone(subjects.wrong(subject), subject)


if __name__ == "__main__":
  unittest.main()
