import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

from bazel import unittest_main

SIZE_BYTES_MAX = 55_000_000


class KitTest(unittest.TestCase):

  def setUp(self):
    self.path = unittest_main.test_args()[0]
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    with tarfile.open(self.path) as tar:
      tar.extractall(folder.name)
    self.kit = pathlib.Path(folder.name) / "kit"

  def test_it_is_small_enough_to_be_copied(self):
    self.assertLess(pathlib.Path(self.path).stat().st_size, SIZE_BYTES_MAX)

  def test_it_holds_what_is_run(self):
    for name in ("run", "daemon/r2ccd", "client/r2ccctl", "netplugin/libnccl-net-r2cc.so", "netplugin/libnccl-tuner-r2cc.so",
                 "nccl/libr2cc-nccl.so", "nccl/profiler/libnccl-profiler-r2cc.so"):
      self.assertTrue((self.kit / name).is_file(), name)
    output = subprocess.run([self.kit / "client/r2ccctl", "--help"], capture_output=True, text=True, timeout=30, check=False)
    self.assertEqual(output.returncode, 0, output.stderr)

  def test_it_starts_without_the_tree_and_without_pytorch(self):
    listed = subprocess.run([sys.executable, self.kit / "run", "--list"], capture_output=True, text=True, timeout=30, check=False, cwd="/")
    self.assertEqual(listed.returncode, 0, listed.stderr)
    for case in ("loads", "healthy", "cut", "cut+daemon", "seat", "profiler", "training", "wheel", "inference"):
      self.assertIn(f"\n{case} ", "\n" + listed.stdout)

  def test_mistakes_are_named_in_one_line(self):
    for arguments, word in ((["--cases", "cuts"], "there is no case cuts"), (["--rate", "fast"], "rate 'fast'"),
                            (["--rails", "1"], "--rails"), (["--iproute2", "/nowhere", "--out", "/tmp/r2cc-kit-test"], "")):
      output = subprocess.run([sys.executable, self.kit / "run", *arguments, "--python", "/bin/false"], capture_output=True, text=True,
                              timeout=60, check=False, cwd=self.kit.parent)
      self.assertEqual(output.returncode, 2, output.stderr)
      self.assertIn(word, output.stderr)
      self.assertNotIn("Traceback", output.stderr)
