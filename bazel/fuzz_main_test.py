"""fuzz_main.cc finds a planted bug, keeps the input, and replays it."""

import os
import subprocess
import tempfile
import unittest

SPECIMEN = "bazel/fuzz_specimen"


class FuzzMainTest(unittest.TestCase):

  def setUp(self):
    self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    self.corpus = os.path.join(self.folder, "corpus")
    os.mkdir(self.corpus)

  def write(self, name, data):
    path = os.path.join(self.corpus, name)
    with open(path, "wb") as file:
      file.write(data)
    return path

  def run_specimen(self, *arguments):
    environment = {**os.environ, "TEST_UNDECLARED_OUTPUTS_DIR": self.folder}
    return subprocess.run([SPECIMEN, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=60)

  def test_mutations_find_the_bug_and_the_input_replays_it(self):
    self.write("a", b"BUF")
    self.write("b", b"xxG")
    found = self.run_specimen("--runs=200000", self.corpus)
    self.assertNotEqual(found.returncode, 0)
    kept = found.stderr.strip().split("\n")[-1].split(" kept in ")[-1]
    with open(kept, "rb") as file:
      self.assertEqual(file.read(), b"BUG")
    again = self.run_specimen("--runs=200000", self.corpus)
    self.assertEqual(found.stderr.split(" kept in ")[0], again.stderr.split(" kept in ")[0])
    replayed = self.run_specimen(kept)
    self.assertNotEqual(replayed.returncode, 0)

  def test_a_bug_in_the_corpus_is_found_without_mutations(self):
    self.write("a", b"BUG")
    self.assertNotEqual(self.run_specimen("--runs=0", self.corpus).returncode, 0)

  def test_every_run_is_counted(self):
    self.write("a", b"x")
    self.write("b", b"")
    result = self.run_specimen("--runs=100", "--max_bytes=2", self.corpus)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn("2 inputs of the corpus, 102 runs in all", result.stdout)

  def test_nothing_to_run_is_a_failure(self):
    self.assertEqual(self.run_specimen("--runs=100", self.corpus).returncode, 2)
