"""Jobs of the host device that are killed at random: what `hold` has of each is whole, and so are its files."""

import collections
import concurrent.futures
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from bazel import unittest_main
from observe.python import stand_in
from r2cc import observe
from r2cc.observe import _files
from r2cc.observe import _library

ENVIRONMENT = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
LAST = 100  # steps that must be there
STEPS_FIRST = 120

# Records of 16 B to 4 MiB; each word is the step's number.
JOB = """
import array, sys
from observe.python import stand_in
from r2cc import observe
from tests.observe import kills_test
run, files, seed = sys.argv[1:]
model = stand_in.Module(a=stand_in.Module(lambda x: x))
taps = observe.attach(model, ["a"], run=run, files=files or None, policy=observe.Policy(host_mib=512, segment_mib=16, segment_s=.05))
for step in range(1_000_000):
  x = stand_in.Tensor([], dtype="int64")
  x.storage = array.array("q", [step]) * kills_test.words_of(step, int(seed))
  x.shape = (len(x.storage),)
  model(x)
  if step == kills_test.STEPS_FIRST:
    print("ready", flush=True)
"""


def words_of(step, seed):
  """One layout for each: of few sizes."""
  return 2 << 2 * (random.Random(seed << 32 | step).randrange(10))


setUpModule = stand_in.skip_if_sanitized


class KillsTest(unittest.TestCase):

  def kill_one(self, number, folder):
    run, chance = f"kills-{os.getpid()}-{number}", random.Random(number)
    files = os.path.join(folder, str(number)) if number % 2 == 0 else ""
    pipes = {"stdout": subprocess.PIPE, "env": ENVIRONMENT}
    with subprocess.Popen([sys.executable, "-c", JOB, run, files, str(number)], **pipes) as job:
      try:
        self.assertEqual(job.stdout.readline(), b"ready\n")
        with subprocess.Popen([sys.executable, "-m", "r2cc.observe", "hold", run], **pipes) as holder:
          try:
            self.assertIn(b"holding", holder.stdout.readline())
            time.sleep(chance.random() * .2)
            job.kill()
            job.wait()
            found, = _library.find(run)
            steps = collections.deque(observe.read(run, register=False, follow=False).steps(), LAST)
          finally:
            holder.kill()
      finally:
        job.kill()
    self.assertFalse(found.alive)
    last = [step.number for step in steps]
    self.assertEqual(last, list(range(last[0], last[0] + LAST)), f"kill {number}")
    # One may have been on its way.
    self.assertIn(found.counts.steps - 1 - last[-1], (0, 1), f"kill {number}")
    for step in steps:
      words = words_of(step.number, number)
      self.assertEqual(step["a"].data, struct.pack("<q", step.number) * words, f"kill {number}, step {step.number}")
    # Each segment that the manifest names is whole.
    lines = []
    if files and any(name.endswith(".manifest") for name in os.listdir(files)):
      lines = list(_files.verify(files, None))
      shutil.rmtree(files)
    return lines

  def test_each_killed_job_leaves_whole_records(self):
    kills = int((unittest_main.test_args() or ["4"])[0])
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
      results = list(pool.map(lambda number: self.kill_one(number, folder), range(kills)))
    self.assertEqual(len(results), kills)
    self.assertTrue(any(results), "no job had files")
    print(f"{kills} kills, {sum(map(bool, results))} of them with files: " + next(filter(None, results))[0])
