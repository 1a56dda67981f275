"""The runner's own honesty: each kind of outcome is counted once and as what it is."""

import io
import sys
import types
import unittest
import xml.etree.ElementTree as ElementTree

from bazel import unittest_main


def outcomes(module_body, required=""):
  """Runs a module made of `module_body` and returns {method name: outcome}."""
  module = types.ModuleType("specimen")
  sys.modules["specimen"] = module
  module.__dict__.update(unittest=unittest)
  exec(module_body, module.__dict__)  # pylint: disable=exec-used
  try:
    cases = unittest_main.run(["specimen"], io.StringIO(), required)
  finally:
    del sys.modules["specimen"]
  return {case.name: case.outcome for case in cases}, cases


ONE_OF_EACH = """
class Specimen(unittest.TestCase):
  def test_pass(self): pass
  def test_fail(self): self.assertEqual(1, 2)
  def test_error(self): raise OSError("gone")
  def test_skip(self): self.skipTest("needs root: makes namespaces")
  def test_sub_tests_pass(self):
    for i in range(3):
      with self.subTest(i=i): pass
  def test_sub_test_fails(self):
    for i in range(3):
      with self.subTest(i=i): self.assertEqual(i, 0)
  @unittest.expectedFailure
  def test_expected(self): self.fail("as expected")
  @unittest.expectedFailure
  def test_unexpected(self): pass
"""

CLASS_CANNOT_START = """
class Specimen(unittest.TestCase):
  @classmethod
  def setUpClass(cls): raise %s
  def test_a(self): pass
  def test_b(self): pass
"""


class RunnerTest(unittest.TestCase):

  def test_every_outcome_is_distinguished(self):
    got, _ = outcomes(ONE_OF_EACH)
    self.assertEqual(got, {
        "test_pass": "passed", "test_fail": "failed", "test_error": "failed", "test_skip": "skipped", "test_sub_tests_pass": "passed",
        "test_sub_test_fails": "failed", "test_expected": "passed", "test_unexpected": "failed"})

  def test_a_skip_that_was_promised_not_to_happen_fails(self):
    self.assertEqual(outcomes(ONE_OF_EACH, "etcd,root")[0]["test_skip"], "failed")
    self.assertEqual(outcomes(ONE_OF_EACH, "etcd")[0]["test_skip"], "skipped")

  def test_a_class_that_cannot_start_fails_each_of_its_tests(self):
    got, _ = outcomes(CLASS_CANNOT_START % "OSError('no')")
    self.assertEqual(got, {"test_a": "failed", "test_b": "failed"})

  def test_a_class_that_skips_skips_each_of_its_tests(self):
    body = CLASS_CANNOT_START % "unittest.SkipTest('needs root: x')"
    self.assertEqual(outcomes(body)[0], {"test_a": "skipped", "test_b": "skipped"})
    self.assertEqual(outcomes(body, "root")[0], {"test_a": "failed", "test_b": "failed"})

  def test_a_failing_class_tear_down_is_not_lost(self):
    got, _ = outcomes("""
class Specimen(unittest.TestCase):
  @classmethod
  def tearDownClass(cls): raise OSError("left over")
  def test_a(self): pass
""")
    self.assertEqual(got, {"test_a": "passed", "tearDownClass": "failed"})

  def test_a_module_that_cannot_be_imported_fails(self):
    cases = unittest_main.run(["no_such_module_anywhere"], io.StringIO())
    self.assertEqual([case.outcome for case in cases], ["failed"])

  def test_xml_has_the_same_outcomes(self):
    _, cases = outcomes(ONE_OF_EACH)
    root = ElementTree.fromstring(unittest_main.to_xml("specimen", cases))
    self.assertGreater(float(root.get("processor_seconds")), 0)
    suite = root.find("testsuite")
    self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("8", "4", "1"))
    self.assertEqual(len(suite.findall("testcase/failure")), 4)
    self.assertEqual([e.get("message") for e in suite.findall("testcase/skipped")], ["needs root: makes namespaces"])
