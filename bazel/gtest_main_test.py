"""gtest_main.cc: by R2CC_REQUIRE a skip that was promised not to happen fails, and does not hang; what the test cost is in test.xml."""

import os
import subprocess
import unittest

from bazel import ci_times


def run_specimen(required, xml_output=""):
  environment = {**os.environ, "R2CC_REQUIRE": required, "XML_OUTPUT_FILE": "", "GTEST_OUTPUT": xml_output}
  return subprocess.run(["bazel/gtest_specimen"], env=environment, stdout=subprocess.PIPE, text=True, timeout=50, check=False)


class GtestMainTest(unittest.TestCase):

  def test_a_skip_is_a_skip_where_nothing_was_promised(self):
    for required in ("", "qemu", "qemu,etcd"):
      self.assertEqual(run_specimen(required).returncode, 0)

  def test_a_skip_that_was_promised_not_to_happen_fails(self):
    for required in ("root", "qemu,root"):
      done = run_specimen(required)
      self.assertEqual(done.returncode, 1)
      self.assertIn("R2CC_REQUIRE promises 'root'", done.stdout)

  def test_xml_has_its_processor_time(self):
    path = os.path.join(os.environ["TEST_TMPDIR"], "specimen.xml")
    run_specimen("", f"xml:{path}")
    with open(path, encoding="utf-8") as file:
      cpu_s = ci_times.cpu_seconds(file.read())
    self.assertIsNotNone(cpu_s)
    self.assertTrue(0 <= cpu_s < 60, cpu_s)
