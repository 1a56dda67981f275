"""What the summary makes of each kind of record: test.xml in the dialects that exist, and Bazel's word on targets."""

import contextlib
import io
import json
import os
import tempfile
import unittest

from bazel import ci_summary

# As GoogleTest 1.12 writes it, shortened.
GTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5" failures="2" disabled="1" errors="0" time="0." name="AllTests">
  <testsuite name="Page" tests="5" failures="2" disabled="1" skipped="2" errors="0">
    <testcase name="Reads" file="a.cc" line="3" status="run" result="completed" time="0." classname="Page" />
    <testcase name="Fails" status="run" result="completed" time="0." classname="Page">
      <failure message="a.cc:7&#x0A;Expected equality" type=""><![CDATA[a.cc:7 Expected equality]]></failure>
    </testcase>
    <testcase name="Skips" status="run" result="skipped" time="0." classname="Page">
      <skipped message="a.cc:9&#x0A;needs qemu: boots a guest"><![CDATA[a.cc:9 needs qemu: boots a guest]]></skipped>
    </testcase>
    <testcase name="SkipsThoughPromised" status="run" result="completed" time="0." classname="Page">
      <failure message="skipped although R2CC_REQUIRE promises 'root'" type=""><![CDATA[x]]></failure>
      <skipped message="needs root: x"><![CDATA[x]]></skipped>
    </testcase>
    <testcase name="DISABLED_Off" status="notrun" result="suppressed" time="0." classname="Page" />
  </testsuite>
</testsuites>"""
ALL_PASS = '<testsuites><testsuite><testcase classname="A" name="a"/><testcase classname="A" name="b"/></testsuite></testsuites>'
# As Bazel writes it for a test that wrote none.
BAZEL = ('<testsuites><testsuite name="x" tests="1" failures="0" errors="%d"><testcase name="x" status="run" time="0">%s</testcase>'
         '</testsuite></testsuites>')


def configured(label, kind="cc_test rule"):
  return {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind}}


def result(label, status, uri=None, attempt=1, shard=1):
  outputs = [{"name": "test.log", "uri": "file:///log"}] + ([{"name": "test.xml", "uri": uri}] if uri else [])
  return {"id": {"testResult": {"label": label, "run": 1, "shard": shard, "attempt": attempt}},
          "testResult": {"status": status, "testActionOutput": outputs}}


def summary(label, status):
  return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


def ran(label, status, uri):
  return [configured(label), result(label, status, uri), summary(label, status)]


def counts(events, exit_code=0, files=None):
  def read(uri):
    if uri not in (files or {}):
      raise OSError("no such file")
    return files[uri]
  total = ci_summary.summarize(events, exit_code, read)
  return total.passed, len(total.failed), len(total.skipped)


class CasesTest(unittest.TestCase):

  def test_googletest(self):
    got = ci_summary.count_cases("//a:a", GTEST)
    self.assertEqual((got.passed, len(got.failed), len(got.skipped)), (1, 2, 2))
    self.assertIn("//a:a Page.Fails", got.failed[0])

  def test_bazels_own(self):
    self.assertEqual(ci_summary.count_cases("//a:a", BAZEL % (0, "")).passed, 1)
    self.assertEqual(len(ci_summary.count_cases("//a:a", BAZEL % (1, '<error message="exited with error code 1"/>')).failed), 1)

  def test_a_torn_file_is_an_error(self):
    with self.assertRaises(ValueError):
      ci_summary.count_cases("//a:a", GTEST[:200])


class RunTest(unittest.TestCase):

  def test_all_passed(self):
    self.assertEqual(counts(ran("//a:a", "PASSED", "x"), 0, {"x": ALL_PASS}), (2, 0, 0))

  def test_skips_are_not_passes(self):
    self.assertEqual(counts(ran("//a:a", "FAILED", "x"), 3, {"x": GTEST}), (1, 2, 2))

  def test_a_crash_after_the_last_case_is_a_failure(self):
    self.assertEqual(counts(ran("//a:a", "FAILED", "x"), 3, {"x": ALL_PASS}), (2, 1, 0))

  def test_a_timeout_is_a_failure(self):
    timeout = BAZEL % (1, '<error message="exited with error code 142"/>')
    self.assertEqual(counts(ran("//a:a", "TIMEOUT", "x"), 3, {"x": timeout}), (0, 1, 0))
    self.assertEqual(counts(ran("//a:a", "TIMEOUT", None), 3), (0, 1, 0))

  def test_no_xml_is_one_case(self):
    self.assertEqual(counts(ran("//a:a", "PASSED", None)), (1, 0, 0))

  def test_a_lost_xml_is_a_failure(self):
    self.assertEqual(counts(ran("//a:a", "PASSED", "x")), (0, 1, 0))

  def test_a_test_without_cases_is_a_failure(self):
    self.assertEqual(counts(ran("//a:a", "PASSED", "x"), 0, {"x": "<testsuites/>"}), (0, 1, 0))

  def test_a_test_that_does_not_build_is_one_failure(self):
    events = [configured("//a:a"), {"id": {"targetCompleted": {"label": "//a:a"}}, "completed": {}}, summary("//a:a", "FAILED_TO_BUILD")]
    self.assertEqual(counts(events + ran("//a:b", "PASSED", "x"), 1, {"x": ALL_PASS}), (2, 1, 0))

  def test_a_test_that_never_ran_is_a_failure(self):
    self.assertEqual(counts([configured("//a:a")] + ran("//a:b", "PASSED", "x"), 3, {"x": ALL_PASS}), (2, 1, 0))

  def test_a_binary_that_does_not_build_is_a_failure(self):
    events = [configured("//a:bin", "cc_binary rule"), {"id": {"targetCompleted": {"label": "//a:bin"}}, "aborted": {"reason": "X"}}]
    self.assertEqual(counts(events + ran("//a:b", "PASSED", "x"), 3, {"x": ALL_PASS}), (2, 1, 0))

  def test_a_package_that_does_not_load_is_a_failure(self):
    aborted = {"id": {"pattern": {"pattern": ["//..."]}}, "aborted": {"reason": "LOADING_FAILURE", "description": "bad BUILD"}}
    progress_event = {"id": {"progress": {}}, "progress": {"stderr": "ERROR: x\nERROR: package contains errors: bad/er\nWARNING: y"}}
    for event in (aborted, progress_event):
      self.assertEqual(counts([event] + ran("//a:b", "PASSED", "x"), 1, {"x": ALL_PASS}), (2, 1, 0))

  def test_bazels_exit_status_is_never_lost(self):
    self.assertEqual(counts(ran("//a:a", "PASSED", "x"), 37, {"x": ALL_PASS}), (2, 1, 0))
    for unexplained in (1, 3):
      self.assertEqual(counts(ran("//a:a", "PASSED", "x"), unexplained, {"x": ALL_PASS}), (2, 1, 0))
    self.assertGreater(counts([], 0)[1], 0)

  def test_all_shards_count(self):
    events = [configured("//a:a"), result("//a:a", "PASSED", "x", shard=1), result("//a:a", "PASSED", "x", shard=2),
              summary("//a:a", "PASSED")]
    self.assertEqual(counts(events, 0, {"x": ALL_PASS}), (4, 0, 0))

  def test_the_last_attempt_counts_and_that_there_were_two_is_a_failure(self):
    events = [configured("//a:a"), result("//a:a", "FAILED", "bad", attempt=1), result("//a:a", "PASSED", "x", attempt=2),
              summary("//a:a", "FLAKY")]
    self.assertEqual(counts(events, 0, {"x": ALL_PASS, "bad": GTEST}), (2, 1, 0))

  def test_counts_what_was_remembered(self):
    events = ran("//a:a", "PASSED", "x") + ran("//a:b", "PASSED", "x") + ran("//a:c", "PASSED", "x")
    events[1]["testResult"]["cachedLocally"] = True
    events[4]["testResult"]["executionInfo"] = {"cachedRemotely": True}
    events[7]["testResult"]["executionInfo"] = {"strategy": "linux-sandbox"}
    total = ci_summary.summarize(events, 0, lambda uri: ALL_PASS)
    self.assertEqual((total.passed, total.cached), (6, 4))

  def test_uncached_results_have_a_cost(self):
    events = ran("//a:a", "PASSED", "x") + ran("//a:b", "PASSED", "x") + ran("//a:c", "PASSED", "y")
    for event in events[1::3]:
      event["testResult"]["testAttemptDurationMillis"] = "2500"
    events[4]["testResult"]["cachedLocally"] = True
    files = {"x": '<testsuites processor_seconds="1.5"><testcase name="a"/></testsuites>', "y": ALL_PASS}
    costs = ci_summary.summarize(events, 0, files.__getitem__).costs
    self.assertEqual({label: (cost.wall_s, cost.cpu_s) for label, cost in costs.items()}, {"//a:a": (2.5, 1.5), "//a:c": (2.5, None)})

  def test_far_beyond_the_budget_fails(self):
    with tempfile.TemporaryDirectory() as folder:
      xml_path, events_path = os.path.join(folder, "test.xml"), os.path.join(folder, "events.json")
      with open(events_path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in ran("//a:a", "PASSED", "file://" + xml_path))
      for cpu_s, exit_status, last in ((1, 0, "1 passed, 0 failed, 0 skipped"), (100_000, 1, "1 passed, 1 failed, 0 skipped")):
        with open(xml_path, "w", encoding="utf-8") as file:
          file.write(f'<testsuites processor_seconds="{cpu_s}"><testcase name="a"/></testsuites>')
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
          self.assertEqual(ci_summary.main(["plain", events_path, "0"]), exit_status)
        self.assertEqual(output.getvalue().splitlines()[-1], last)
        self.assertIn("slow: plain: //a:a: 0 s", output.getvalue())

  def test_main_reads_real_files(self):
    with tempfile.TemporaryDirectory() as folder:
      xml_path, events_path = os.path.join(folder, "test 1.xml"), os.path.join(folder, "events.json")
      with open(xml_path, "w", encoding="utf-8") as file:
        file.write(ALL_PASS)
      with open(events_path, "w", encoding="utf-8") as file:
        for event in ran("//a:a", "PASSED", "file://" + xml_path.replace(" ", "%20")):
          file.write(json.dumps(event) + "\n")
        file.write('{"id": {"tor')
      self.assertEqual(ci_summary.main(["plain", events_path, "0"]), 0)
      self.assertEqual(ci_summary.main(["plain", events_path, "8"]), 1)
      self.assertEqual(ci_summary.main(["plain", os.path.join(folder, "none"), "0"]), 1)
      self.assertEqual(ci_summary.main([]), 2)
      self.assertEqual(ci_summary.main(["plain", events_path]), 2)

      output = io.StringIO()
      with contextlib.redirect_stdout(output):
        self.assertEqual(ci_summary.main(["plain", events_path, "0", "sanitized", events_path, "8"]), 1)
      self.assertIn("FAILED: sanitized: bazel test ended with exit status 8\n", output.getvalue())
      self.assertEqual(output.getvalue().splitlines()[-1], "4 passed, 1 failed, 0 skipped")
