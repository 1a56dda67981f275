"""libr2cc-observe.so as Python loads it. The path is the test's argument."""

import ctypes
import os
import re
import subprocess
import unittest

from bazel import unittest_main
from tests.artifact import elf

SIZE_BYTES_MAX = 4 << 20


class ObserveTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.path = os.path.abspath(unittest_main.test_args()[0])
    cls.elf = elf.read(cls.path)

  def test_needs_only_what_every_machine_has(self):
    self.assertEqual(self.elf.needed - elf.JOB_NEEDED, set())
    self.assertEqual(self.elf.run_paths, frozenset())
    self.assertTrue(self.elf.glibc_versions)
    self.assertEqual(elf.glibc_newer_than(self.elf, elf.JOB_GLIBC_NEWEST), set())

  def test_shows_its_calls_and_nothing_else(self):
    self.assertEqual({name for name in self.elf.exported if not name.startswith("r2cc_observe_")}, set())
    self.assertLessEqual({"r2cc_observe_open", "r2cc_observe_gather", "r2cc_observe_next"}, self.elf.exported)

  def test_is_never_unloaded_and_small(self):
    self.assertIn("NODELETE", self.elf.flags)
    self.assertNotIn("TEXTREL", self.elf.flags)
    self.assertLess(os.path.getsize(self.path), SIZE_BYTES_MAX)
    ctypes.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_LOCAL)

  def test_holds_no_mutant(self):
    symbols = subprocess.run(["readelf", "-sW", self.path], check=True, stdout=subprocess.PIPE, text=True).stdout
    self.assertTrue(re.search("RingReader", symbols))  # there are names to look at
    self.assertNotRegex(symbols, r"(?i)mutant")
