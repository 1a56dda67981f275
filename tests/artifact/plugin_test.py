"""The plugin as NCCL gets it: what it needs, what it shows, and that it loads. The path is the test's argument."""

import ctypes
import os
import re
import subprocess
import unittest

from bazel import unittest_main
from tests.artifact import elf

EXPORTED = re.compile(r"(ncclNetPlugin|ncclCollNetPlugin)_v[0-9]+|r2cc_profile_v1|r2cc_seat_v2")
SIZE_BYTES_MAX = 8 << 20


class PluginTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.path = os.path.abspath(unittest_main.test_args()[0])
    cls.elf = elf.read(cls.path)

  def test_needs_only_what_every_machine_has(self):
    self.assertEqual(self.elf.needed - elf.JOB_NEEDED, set())
    self.assertEqual(self.elf.run_paths, frozenset())

  def test_needs_no_glibc_newer_than_2_34(self):
    self.assertTrue(self.elf.glibc_versions)
    self.assertEqual(elf.glibc_newer_than(self.elf, elf.JOB_GLIBC_NEWEST), set())

  def test_shows_nccls_tables_and_nothing_else(self):
    self.assertEqual({name for name in self.elf.exported if not EXPORTED.fullmatch(name)}, set())
    self.assertLessEqual({f"ncclNetPlugin_v{version}" for version in range(7, 13)}, self.elf.exported)
    # While NCCL finds any tuner, it leaves out a choice of its own, and a profiler costs time: these are other files.
    self.assertFalse({name for name in self.elf.exported if name.startswith(("ncclTuner", "ncclProfiler"))})

  def test_is_never_unloaded_and_has_no_text_relocations(self):
    self.assertIn("NODELETE", self.elf.flags)
    self.assertNotIn("TEXTREL", self.elf.flags)

  def test_holds_no_mutant(self):
    symbols = subprocess.run(["readelf", "-sW", self.path], check=True, stdout=subprocess.PIPE, text=True).stdout
    self.assertIn("SendLedger", symbols)  # there are names to look at
    self.assertNotRegex(symbols, r"(?i)mutant")

  def test_is_small(self):
    self.assertLess(os.path.getsize(self.path), SIZE_BYTES_MAX)

  def test_loads_with_every_symbol_bound_at_once(self):
    library = ctypes.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    for name in self.elf.exported:
      self.assertTrue(ctypes.addressof(ctypes.c_char.in_dll(library, name)))
