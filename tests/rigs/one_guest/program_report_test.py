"""Reports as GoogleTest 1.12 and the fault injector write them."""

import unittest

from tests.rigs.one_guest import program_report

_REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="0" disabled="0" errors="0" time="0." name="AllTests">
  <testsuite name="A" tests="3" failures="0" disabled="0" skipped="1" errors="0" time="0.">
    <testcase name="Passes" file="a_test.cc" line="5" status="run" result="completed" time="0." classname="A" />
    <testcase name="Skips" file="a_test.cc" line="9" status="run" result="skipped" time="0." classname="A">
      <skipped message="a_test.cc:10&#x0A;needs a NIC&#x0A;"><![CDATA[a_test.cc:10]]></skipped>
    </testcase>
    <testcase name="Filtered" file="a_test.cc" line="13" status="notrun" result="suppressed" time="0." classname="A" />
  </testsuite>
</testsuites>
"""


class SkippedCases(unittest.TestCase):

  def test_a_skipped_one_is_named_with_its_reason_and_one_that_did_not_run_counts_as_none(self):
    self.assertEqual(program_report.skipped_cases(_REPORT), (["A.Skips: a_test.cc:10\nneeds a NIC"], 2))


class FaultsInjected(unittest.TestCase):

  def test_all_processes_count(self):
    output = ("faulty_libibverbs: completion 3 fails with 12\nfaulty_libibverbs: injected 2 of 3 faults\n"
              "rank 1: done\nfaulty_libibverbs: injected 0 of 3 faults\nfaulty_libibverbs: injected 1 of 3 faults\n")
    self.assertEqual(program_report.faults_injected(output), 3)

  def test_a_library_that_nobody_opened_injected_none(self):
    self.assertEqual(program_report.faults_injected("all well\n"), 0)
