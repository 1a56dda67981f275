"""The programs run on any distribution with a new enough glibc: gRPC, protobuf, abseil and libstdc++ are inside them."""

import unittest

from bazel import unittest_main
from tests.artifact import elf

ALLOWED_NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
                  "ld-linux-aarch64.so.1"}
# That of RHEL 9; Ubuntu 22.04 has 2.35.
GLIBC_NEWEST = (2, 34)


class ProgramsTest(unittest.TestCase):

  def test_need_only_glibc_and_libgcc(self):
    self.assertTrue(unittest_main.test_args())
    for path in unittest_main.test_args():
      with self.subTest(path=path):
        self.assertEqual(elf.read(path).needed - ALLOWED_NEEDED, set())
        self.assertEqual(elf.read(path).run_paths, frozenset())

  def test_need_no_glibc_newer_than_2_34(self):
    for path in unittest_main.test_args():
      with self.subTest(path=path):
        self.assertTrue(elf.read(path).glibc_versions)
        self.assertEqual(elf.glibc_newer_than(elf.read(path), GLIBC_NEWEST), set())
