"""R2CC_REQUIRE in gtest_main.cc: a skip that was promised not to happen fails, and does not hang."""

import os
import subprocess
import unittest


def run_specimen(required):
  return subprocess.run(["bazel/gtest_specimen"], env={**os.environ, "R2CC_REQUIRE": required, "XML_OUTPUT_FILE": "", "GTEST_OUTPUT": ""},
                        stdout=subprocess.PIPE, text=True, timeout=50, check=False)


class GtestMainTest(unittest.TestCase):

  def test_a_skip_is_a_skip_where_nothing_was_promised(self):
    for required in ("", "qemu", "qemu,etcd"):
      self.assertEqual(run_specimen(required).returncode, 0)

  def test_a_skip_that_was_promised_not_to_happen_fails(self):
    for required in ("root", "qemu,root"):
      done = run_specimen(required)
      self.assertEqual(done.returncode, 1)
      self.assertIn("R2CC_REQUIRE promises 'root'", done.stdout)
