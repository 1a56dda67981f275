"""What a job takes beside the plugin: the tuner, the profiler and the library for LD_PRELOAD. Arguments: their paths."""

import ctypes
import os
import re
import subprocess
import unittest

from bazel import unittest_main
from deploy.debian import elf_stamp
from tests.artifact import elf

SHOWN = {
    "libnccl-profiler-r2cc.so": {f"ncclProfiler_v{version}" for version in range(1, 8)},
    "libnccl-tuner-r2cc.so": {*(f"ncclTunerPlugin_v{version}" for version in range(2, 7)), "r2cc_seat_tuner_v3"},
    # NCCL's functions that it stands before. One more is one that no program reaches without it.
    "libr2cc-nccl.so": {
        "ncclAllGather", "ncclAllReduce", "ncclAlltoAll", "ncclBcast", "ncclBroadcast", "ncclCommAbort", "ncclCommDeregister",
        "ncclCommDestroy", "ncclCommFinalize", "ncclCommGetAsyncError", "ncclCommInitRank", "ncclCommInitRankConfig",
        "ncclCommInitRankScalable", "ncclCommRegister", "ncclCommRevoke", "ncclCommSplit", "ncclGather",
        "ncclGetUniqueId", "ncclGroupEnd", "ncclGroupStart", "ncclRecv", "ncclReduce", "ncclReduceScatter", "ncclScatter", "ncclSend",
        # For LD_AUDIT.
        "la_objopen", "la_preinit", "la_symbind64", "la_version"
    },
}
SIZE_BYTES_MAX = 2 << 20


class PreloadsTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.files = {os.path.basename(path): os.path.abspath(path) for path in unittest_main.test_args()}

  def test_they_are_those_that_are_known(self):
    self.assertEqual(set(self.files), set(SHOWN))

  def test_need_and_show_what_they_should(self):
    for name, path in self.files.items():
      with self.subTest(name=name):
        found = elf.read(path)
        self.assertEqual(found.needed - elf.JOB_NEEDED, set())
        self.assertEqual(found.run_paths, frozenset())
        self.assertTrue(found.glibc_versions)
        self.assertEqual(elf.glibc_newer_than(found, elf.JOB_GLIBC_NEWEST), set())
        self.assertEqual(found.exported, SHOWN[name])
        self.assertIn("NODELETE", found.flags)
        self.assertNotIn("TEXTREL", found.flags)
        self.assertLess(os.path.getsize(path), SIZE_BYTES_MAX)
        ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)

  def test_have_a_place_for_the_release(self):
    for path in self.files.values():
      sections = subprocess.run(["readelf", "-SW", path], check=True, stdout=subprocess.PIPE, text=True).stdout
      self.assertIn(elf_stamp.SECTION, sections, path)

  def test_hold_no_mutant(self):
    symbols = subprocess.run(["readelf", "-sW", self.files["libr2cc-nccl.so"]], check=True, stdout=subprocess.PIPE, text=True).stdout
    self.assertTrue(re.search("Shadow", symbols))  # there are names to look at
    self.assertNotRegex(symbols, r"(?i)mutant")

  def test_a_process_without_nccl_does_not_notice(self):
    for variable, seat in (("LD_PRELOAD", "0"), ("LD_PRELOAD", "1"), ("LD_AUDIT", "1")):
      output = subprocess.run(["cat", "/proc/self/maps"], check=True, capture_output=True, text=True,
                              env={variable: self.files["libr2cc-nccl.so"], "R2CC_SEAT": seat, "PATH": os.environ["PATH"]})
      self.assertIn(os.path.realpath(self.files["libr2cc-nccl.so"]), output.stdout)
      self.assertNotIn("libcuda", output.stdout)
      self.assertEqual(output.stderr, "")
