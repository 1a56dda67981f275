"""The test of one_guest_test (one_guest.bzl): one program in one guest."""

import os
import unittest

from bazel.unittest_main import test_args
from testing.guest import guest
from tests.rigs.one_guest import program_report


class Program(unittest.TestCase):

  def test_in_a_guest(self):
    reason = guest.missing_feature()
    if reason is not None:
      self.skipTest(f"needs one_guest: {reason}")
    rails, wiring, limit_s, *argv = test_args()
    # What the caller asks of the test is for the program: R2CC_REQUIRE, --test_filter, and the program's own.
    environment = {name: value for name, value in os.environ.items() if name.startswith("R2CC_")}
    if "TESTBRIDGE_TEST_ONLY" in os.environ:
      environment["GTEST_FILTER"] = os.environ["TESTBRIDGE_TEST_ONLY"]
    while "=" in argv[0]:
      environment |= [argv.pop(0).split("=", 1)]
    environment["GTEST_OUTPUT"] = "xml:/run/guest/out/gtest.xml"
    with guest.Guest(int(rails), wiring) as machine:
      result = machine.run([os.path.abspath(argv[0]), *argv[1:]], environment, float(limit_s))
      report = result.folder / "gtest.xml"
      skipped, ran = program_report.skipped_cases(report.read_text(encoding="utf-8")) if report.exists() else ([], 1)
    self.assertEqual(result.status, 0, f"exit status of {argv[0]}")
    self.assertEqual(result.kernel_complaints(), [])
    self.assertGreater(ran, 0, "no test ran")
    if "R2CC_VERBS_FAULTS" in environment:
      self.assertGreater(program_report.faults_injected(result.output), 0, "no fault was injected")
    print("".join(f"skipped: {line}\n" for line in skipped), end="")
    if len(skipped) == ran:
      self.skipTest("; ".join(skipped))
