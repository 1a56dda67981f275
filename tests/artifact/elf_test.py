"""elf.py against shared libraries of known properties, and against readelf's text."""

import unittest

from tests.artifact import elf

VERSIONS = """
Version needs section '.gnu.version_r' contains 2 entries:
 Addr: 0x0000000000000f60  Offset: 0x000f60  Link: 4 (.dynstr)
  000000: Version: 1  File: libgcc_s.so.1  Cnt: 1
  0x0010:   Name: GCC_3.0  Flags: none  Version: 6
  0x0020: Version: 1  File: libc.so.6  Cnt: 4
  0x0030:   Name: GLIBC_2.34  Flags: none  Version: 5
  0x0040:   Name: GLIBC_2.2.5  Flags: none  Version: 2
"""


class ElfTest(unittest.TestCase):

  def test_good_specimen(self):
    specimen = elf.read("tests/artifact/good_specimen.so")
    self.assertEqual(specimen.exported, {"ncclNetPlugin_v8", "ncclNetPlugin_v11"})
    self.assertIn("NODELETE", specimen.flags)
    self.assertIn("libc.so.6", specimen.needed)
    self.assertEqual(specimen.run_paths, frozenset())

  def test_bad_specimen(self):
    specimen = elf.read("tests/artifact/bad_specimen.so")
    self.assertTrue({"ncclNetPlugin_v8", "helper_c", "helper_data"} < specimen.exported, specimen.exported)
    self.assertNotIn("puts", specimen.exported)
    self.assertNotIn("NODELETE", specimen.flags)
    self.assertIn("libz.so.1", specimen.needed)
    self.assertEqual(specimen.run_paths, {"/nowhere"})

  def test_a_file_that_is_not_elf_is_refused(self):
    with self.assertRaises(Exception):
      elf.read("tests/artifact/elf.py")

  def test_glibc_versions_are_compared_as_numbers(self):
    old = elf.parse("", "", VERSIONS)
    self.assertEqual(old.glibc_versions, {"GLIBC_2.34", "GLIBC_2.2.5"})
    self.assertEqual(elf.glibc_newer_than(old, (2, 34)), set())
    self.assertEqual(elf.glibc_newer_than(old, (2, 33)), {"GLIBC_2.34"})
    new = elf.parse("", "", VERSIONS.replace("GLIBC_2.2.5", "GLIBC_2.36"))
    self.assertEqual(elf.glibc_newer_than(new, (2, 34)), {"GLIBC_2.36"})
    for odd in ("GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"):
      self.assertEqual(elf.glibc_newer_than(elf.parse("", "", VERSIONS.replace("GLIBC_2.2.5", odd)), (2, 34)), {odd})
