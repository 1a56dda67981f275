"""What a target is built from, as Bazel knows it, against the folder table. Arguments: rule=FILE, FILE holding a genquery's labels."""

import re
import unittest

from bazel import unittest_main

# The plugin lives inside somebody else's process: no library that this process may have in another version.
LIBRARIES = r"@system//:(abseil|grpc|protobuf|spdlog|cli11)"
# What no product is built from.
OUTSIDE = "deploy|testing|tests|tools"
FORBIDDEN = {
    "plugin": re.compile(rf"{LIBRARIES}|//(base(?!/core)|health|daemon|client|proto|nccl|observe|{OUTSIDE})[/:].*"),
    # Nothing of the data plane.
    "interposer": re.compile(rf"{LIBRARIES}|//(base(?!/core)|health|daemon|client|proto|{OUTSIDE})[/:].*|"
                             r"//netplugin(?!/(abi|config|gpu):).*"),
    "tuner": re.compile(rf"{LIBRARIES}|//(base(?!/core)|health|daemon|client|proto|nccl|observe|plan|{OUTSIDE})[/:].*|"
                        r"//netplugin/(collnet|flow|link|rails|transport)[/:].*"),
    "profiler": re.compile(rf"{LIBRARIES}|//(base(?!/core)|health|daemon|client|proto|observe|plan|{OUTSIDE})[/:].*|"
                           r"//netplugin(?!/abi:).*|//nccl:(?!loaded_symbol).*"),
    # A neighbour: nothing of the rest but base/core.
    "observe": re.compile(rf"{LIBRARIES}|//(base(?!/core)|health|daemon|client|proto|netplugin|nccl|plan|{OUTSIDE})[/:].*"),
    "plan": re.compile(rf"@system//.*|//(base(?!/core)|health|daemon|client|proto|netplugin|nccl|observe|{OUTSIDE})[/:].*"),
    "client": re.compile(rf"//(health|daemon|netplugin|nccl|observe|{OUTSIDE})[/:].*"),
    "daemon": re.compile(rf"//(netplugin|nccl|observe|client|{OUTSIDE})[/:].*"),
}


def violations(rule, labels):
  """The labels that `rule` forbids, sorted."""
  return sorted(label for label in labels if FORBIDDEN[rule].fullmatch(label))


class DependenciesTest(unittest.TestCase):

  def test_rules_can_fail(self):
    fine = ["//netplugin/flow:flow", "//plan/page:page", "//base/core:clock", "@bazel_tools//tools/cpp:toolchain"]
    bad = ["//base:log", "//base/io:x", "//health/view:view", "//proto:r2cc", "@system//:abseil", "@system//:grpc"]
    self.assertEqual(violations("plugin", fine + bad), sorted(bad))

  def test_no_target_depends_on_what_it_must_not_see(self):
    self.assertTrue(unittest_main.test_args())
    for argument in unittest_main.test_args():
      rule, path = argument.split("=", 1)
      with self.subTest(rule=rule, path=path), open(path, encoding="utf-8") as file:
        labels = file.read().split()
        self.assertGreater(len(labels), 1, "the query gave nothing")
        self.assertEqual(violations(rule, labels), [])
