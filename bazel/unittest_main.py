"""Runs unittest modules as a Bazel test: JUnit XML in XML_OUTPUT_FILE, R2CC_REQUIRE as in gtest_main.cc.

Called by the macro r2cc_py_test as: unittest_main.py MODULE... -- [ARGUMENT...]
"""

import dataclasses
import os
import resource
import sys
import time
import traceback
import unittest
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def test_args():
  """What stands in `args` of the test's rule, with the arguments after a plain `--` of the command line."""
  return sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []


@dataclasses.dataclass
class Case:
  """The outcome of one test method."""
  classname: str
  name: str
  outcome: str
  text: str = ""
  duration_s: float = 0.0


def broken_promise(reason, required):
  """The name in `required` (R2CC_REQUIRE: comma separated) that a test skipped for `reason` lacks, or None."""
  for name in required.split(","):
    if name and f"needs {name}" in reason:
      return name
  return None


def flatten(suite):
  """All test cases of a suite, in the order in which they run."""
  for test in suite:
    if isinstance(test, unittest.TestSuite):
      yield from flatten(test)
    else:
      yield test


class CaseResult(unittest.TestResult):
  """Keeps one Case per test method; a failure in set-up of a class or module falls on every test below it."""

  def __init__(self, stream, required):
    super().__init__()
    self._stream = stream
    self._required = required
    self._start_s = 0.0
    self._cases = {}
    self._above = []  # (outcome, text, what failed) of set-ups and tear-downs of classes and modules

  def startTest(self, test):
    super().startTest(test)
    self._start_s = time.perf_counter()
    print(f"[ RUN  ] {test.id()}", file=self._stream, flush=True)

  def stopTest(self, test):
    super().stopTest(test)
    case = self._cases.get(test.id())
    if case is None:  # only sub-tests reported: all of them passed
      case = self._record(test, PASSED, "")
    case.duration_s = time.perf_counter() - self._start_s
    if case.text:
      print(case.text.rstrip(), file=self._stream)
    print(f"[{case.outcome:^8}] {test.id()} ({case.duration_s:.2f} s)", file=self._stream, flush=True)

  def addSuccess(self, test):
    self._record(test, PASSED, "")

  def addFailure(self, test, err):
    self._record(test, FAILED, "".join(traceback.format_exception(*err)))

  def addError(self, test, err):
    self._record(test, FAILED, "".join(traceback.format_exception(*err)))

  def addSkip(self, test, reason):
    promise = broken_promise(reason, self._required)
    if promise is None:
      self._record(test, SKIPPED, reason)
    else:
      self._record(test, FAILED, f"skipped although R2CC_REQUIRE promises '{promise}': {reason}")

  def addExpectedFailure(self, test, err):
    self._record(test, PASSED, "")

  def addUnexpectedSuccess(self, test):
    self._record(test, FAILED, "passed although it is marked as an expected failure")

  def addSubTest(self, test, subtest, err):
    if err is not None:
      self._record(test, FAILED, f"{subtest.id()}\n" + "".join(traceback.format_exception(*err)))

  def _record(self, test, outcome, text):
    """A case is as bad as the worst that was said of it."""
    if not isinstance(test, unittest.TestCase):  # "setUpClass (module.Class)" and its like
      print(f"{test.id()}: {outcome}\n{text}", file=self._stream, flush=True)
      self._above.append((outcome, text, test.id()))
      return None
    test = getattr(test, "test_case", test)  # a sub-test speaks for its method
    classname, _, name = test.id().rpartition(".")
    case = self._cases.setdefault(test.id(), Case(classname, name, PASSED))
    rank = (PASSED, SKIPPED, FAILED)
    if rank.index(outcome) > rank.index(case.outcome):
      case.outcome = outcome
    if text:
      case.text += text if text.endswith("\n") else text + "\n"
    return case

  def cases(self, tests):
    """The outcome of each of `tests`; one that never ran has the outcome of the set-up that was in its way."""
    for test_id, test in ((test.id(), test) for test in tests):
      if test_id in self._cases:
        continue
      outcome, text = FAILED, "never ran"
      for above_outcome, above_text, above in self._above:
        of = above[above.find("(") + 1:-1]
        if test_id.startswith(of + "."):
          outcome, text = above_outcome, f"{above}: {above_text}"
      classname, _, name = test_id.rpartition(".")
      self._cases[test_id] = Case(classname, name, outcome, text)
    # A tear-down has no test of its own, yet its failure must not be lost.
    for outcome, text, above in self._above:
      if outcome == FAILED and above.startswith("tearDown"):
        self._cases[above] = Case(above, above.split(" ")[0], FAILED, text)
    return list(self._cases.values())


def processor_seconds():
  """Of this process and of its children that it has waited for; ci_times.py judges them."""
  usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
  return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def to_xml(name, cases):
  """JUnit XML of `cases` in the dialect that GoogleTest writes."""
  counts = {outcome: sum(case.outcome == outcome for case in cases) for outcome in (PASSED, FAILED, SKIPPED)}
  totals = {"name": name, "tests": str(len(cases)), "failures": str(counts[FAILED]), "skipped": str(counts[SKIPPED]), "errors": "0",
            "time": f"{sum(case.duration_s for case in cases):.3f}"}
  root = ElementTree.Element("testsuites", {**totals, "processor_seconds": f"{processor_seconds():.3f}"})
  suite = ElementTree.SubElement(root, "testsuite", totals)
  for case in cases:
    result = "skipped" if case.outcome == SKIPPED else "completed"
    element = ElementTree.SubElement(suite, "testcase", {
        "classname": case.classname, "name": case.name, "status": "run", "result": result, "time": f"{case.duration_s:.3f}"})
    if case.outcome != PASSED:
      text = "".join(c for c in case.text if c >= " " or c in "\n\t")
      child = ElementTree.SubElement(element, "failure" if case.outcome == FAILED else "skipped", {"message": text.strip().split("\n")[-1]})
      child.text = text
  return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def run(modules, stream, required="", pattern=None):
  """Runs every test of `modules`, or those whose full name matches `pattern`, and returns their Cases."""
  loader = unittest.TestLoader()
  if pattern:
    loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*"]
  suite = loader.loadTestsFromNames(modules)
  tests = list(flatten(suite))
  result = CaseResult(stream, required)
  suite.run(result)
  return result.cases(tests)


def main():
  arguments = sys.argv[1:]
  modules = arguments[:arguments.index("--")] if "--" in arguments else arguments
  cases = run(modules, sys.stdout, os.environ.get("R2CC_REQUIRE", ""), os.environ.get("TESTBRIDGE_TEST_ONLY"))
  if os.environ.get("XML_OUTPUT_FILE"):
    with open(os.environ["XML_OUTPUT_FILE"], "w", encoding="utf-8") as file:
      file.write(to_xml(" ".join(modules), cases))
  counts = {outcome: sum(case.outcome == outcome for case in cases) for outcome in (PASSED, FAILED, SKIPPED)}
  print(f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[SKIPPED]} skipped")
  if not cases:
    print(f"no test in {' '.join(modules)}", file=sys.stderr)
  return 1 if counts[FAILED] or not cases else 0


if __name__ == "__main__":
  sys.exit(main())
