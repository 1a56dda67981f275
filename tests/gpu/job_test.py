import os
import pathlib
import sys
import tempfile
import unittest

from testing.lab.processes import Processes
from tests.gpu import control
from tests.gpu.job import Job, JobBroken

# A rank without PyTorch: says it is ready, and then does what MODE asks.
_RANK = """
import sys, time
sys.path.insert(0, sys.argv[4])
from tests.gpu.control import RankEnd
rank, mode = int(sys.argv[2]), sys.argv[3]
end = RankEnd(sys.argv[1], rank)
if mode == "dies" and rank == 1:
  print("no such device", file=sys.stderr)
  sys.exit(7)
end.send({"event": "ready", "wrong": int(mode == "wrong"), "torch": "none"})
while True:
  command = end.receive()
  if command["do"] == "quit":
    break
  if command["do"] == "stop":
    continue
  if mode == "fails" and rank == 1:
    end.send({"error": "the network is gone"})
    sys.exit(1)
  number = 0
  while command["do"] == "loop" and not (rank == 0 and end.pending()) and number < 200 + 1000000 * (rank == 0):
    end.send({"rows": [(number, 1000 * number + rank, 1000 * number + 500)], "wrong": rank})
    number += 1
    time.sleep(0.001)
  end.send({"done": command["do"], "rank": rank})
"""


class JobTest(unittest.TestCase):

  def job(self, mode: str) -> Job:
    folder = tempfile.TemporaryDirectory(dir="/tmp")
    self.addCleanup(folder.cleanup)
    path = pathlib.Path(folder.name)
    processes = self.enterContext(Processes(path)) if hasattr(self, "enterContext") else Processes(path)
    self.addCleanup(processes.end_all)
    root = str(pathlib.Path(control.__file__).parents[2])
    job = Job("job", 2, path, lambda rank, control_path: processes.start(
        f"rank{rank}", [sys.executable, "-c", _RANK, control_path, str(rank), mode, root]))
    self.addCleanup(job.kill)
    return job

  def test_all_ranks_answer(self):
    job = self.job("works")
    self.assertEqual(job.wait_ready(20), {"torch": "none"})
    self.assertEqual([answer["rank"] for answer in job.ask({"do": "anything"}, 20)], [0, 1])
    self.assertEqual(job.quit()["exit_codes"], [0, 0])

  def test_a_rank_keeps_to_the_processors_it_is_given(self):
    job = self.job("works")
    job.wait_ready(20)
    given = {min(os.sched_getaffinity(0))}
    job.keep_to_processors(1, given)
    self.assertEqual(os.sched_getaffinity(job.pid(1)), given)
    self.assertEqual(os.sched_getaffinity(job.pid(0)), os.sched_getaffinity(0))
    job.ask({"do": "anything"}, 20)

  def test_a_loop_reports_until_it_is_stopped(self):
    job = self.job("works")
    job.wait_ready(20)
    job.begin({"do": "loop"})
    job.wait_rows(20, 20)
    self.assertGreaterEqual(job.done_count(), 20)
    self.assertEqual((job.rows[3].begin_ns, job.rows[3].end_ns), (3001, 3500))
    self.assertEqual(job.wrong, 1)
    self.assertEqual(len(job.stop_loop()), 2)

  def test_a_rank_that_dies_is_named_with_its_last_lines(self):
    job = self.job("dies")
    with self.assertRaisesRegex(JobBroken, "rank 1 ended with 7: no such device"):
      job.wait_ready(20)

  def test_the_error_of_a_rank_is_kept(self):
    job = self.job("fails")
    job.wait_ready(20)
    with self.assertRaisesRegex(JobBroken, "rank 1: the network is gone"):
      job.ask({"do": "anything"}, 20)

  def test_wrong_data_at_the_start_is_no_start(self):
    with self.assertRaisesRegex(JobBroken, "2 wrong elements"):
      self.job("wrong").wait_ready(20)

  def test_no_wait_is_without_limit(self):
    job = self.job("works")
    job.wait_ready(20)
    job.begin({"do": "loop"})
    with self.assertRaisesRegex(JobBroken, "an answer took more than 0.3 s"):
      job.finish(0.3)
