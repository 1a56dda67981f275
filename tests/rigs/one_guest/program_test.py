"""The test of one_guest_test (one_guest.bzl): one program in one guest."""

import os
import unittest

from bazel.unittest_main import test_args
from tests.rigs.one_guest import googletest_report
from tests.rigs.one_guest import guest

# What the caller asks of a test holds for a program of GoogleTest too.
_HANDED_ON = {"R2CC_REQUIRE": "R2CC_REQUIRE", "TESTBRIDGE_TEST_ONLY": "GTEST_FILTER"}


class Program(unittest.TestCase):

  def test_in_a_guest(self):
    reason = guest.missing_feature()
    if reason is not None:
      self.skipTest(f"needs one_guest: {reason}")
    rails, wiring, limit_s, *argv = test_args()
    environment = {theirs: os.environ[ours] for ours, theirs in _HANDED_ON.items() if ours in os.environ}
    environment["GTEST_OUTPUT"] = "xml:/run/guest/out/gtest.xml"
    with guest.Guest(int(rails), wiring) as machine:
      result = machine.run([os.path.abspath(argv[0]), *argv[1:]], environment, float(limit_s))
      report = result.folder / "gtest.xml"
      skipped, ran = googletest_report.skipped_cases(report.read_text(encoding="utf-8")) if report.exists() else ([], 1)
    self.assertEqual(result.status, 0, f"exit status of {argv[0]}")
    self.assertEqual(result.kernel_complaints(), [])
    self.assertGreater(ran, 0, "no test ran")
    print("".join(f"skipped: {line}\n" for line in skipped), end="")
    if len(skipped) == ran:
      self.skipTest("; ".join(skipped))
