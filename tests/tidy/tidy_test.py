"""The source tree keeps to rules.py, but for what allowed.py excuses."""

import re
import unittest

from tests.tidy import allowed
from tests.tidy import rules
from tests.tidy import tree


class TidyTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.sources = tree.read_sources(tree.workspace_root())

  def check(self, name, violations):
    """`violations`: (path, message). All that are not excused are one failure; an excuse that nobody needs is another."""
    paths = {path for path, _ in violations}
    excused = {path for rule, path in allowed.ALLOWED if rule == name}
    lines = [f"  {message}" for path, message in violations if path not in excused]
    if lines:
      self.fail(f"{name}: {len(lines)} violations\n" + "\n".join(lines))
    self.assertEqual(excused - paths, set(), f"{name}: allowed.py excuses what needs no excuse")

  def test_the_tree_is_found(self):
    paths = {source.path for source in self.sources}
    self.assertLessEqual({"WORKSPACE", "bazelw", ".ci/long", ".ci/run", "base/core/clock.cc", "tests/tidy/rules.py"}, paths)

  def test_every_file_is_built(self):
    self.check("unbuilt_files", [(path, f"{path}: {message}") for path, message in rules.unbuilt_files(self.sources)])

  def test_every_label_names_a_package(self):
    self.check("missing_packages", [(path, f"{path}: {message}") for path, message in rules.missing_packages(self.sources)])

  def test_no_two_classes_have_one_name(self):
    self.check("double_classes", [(path, f"{path}: {message}") for path, message in rules.double_classes(self.sources)])

  def test_every_need_has_its_packages(self):
    lists = {source.path.removeprefix("bazel/packages/").removesuffix(".txt") for source in self.sources
             if source.path.startswith("bazel/packages/")}
    builds = [source.text for source in self.sources if source.path.endswith((".bazel", ".bzl"))]
    needs = {need for text in builds for need in re.findall(r'"needs-(\w+)"', text)}
    # The last three bazelw installs by itself.
    self.assertEqual(needs, lists - {"base", "fuzz", "kube"})

  def test_every_excuse_names_a_rule(self):
    self.assertLessEqual({rule for rule, _ in allowed.ALLOWED}, set(rules.RULES) | {"double_classes", "missing_packages", "unbuilt_files"})


def _add_test(name, function):
  def test(self):
    self.check(name, [(source.path, f"{source.path}:{number}: {message}")
                      for source in self.sources for number, message in function(source)])
  setattr(TidyTest, f"test_{name}", test)


for _name, _function in rules.RULES.items():
  _add_test(_name, _function)
