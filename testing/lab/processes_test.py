import os
import pathlib
import signal
import sys
import tempfile
import unittest

from testing.lab.lab import LabError
from testing.lab.processes import Processes, clean_environment, wait_until


def alive(pid: int) -> bool:
  return os.path.exists(f"/proc/{pid}")


class ProcessesTest(unittest.TestCase):

  def setUp(self):
    self._folder = tempfile.TemporaryDirectory()
    self.addCleanup(self._folder.cleanup)
    self.logs = pathlib.Path(self._folder.name)

  def test_descriptors_are_handed_over(self):
    reader, writer = os.pipe()
    with open(reader, "rb") as end, Processes(self.logs) as processes:
      talker = processes.start("talker", ["sh", "-c", f"echo here >&{writer}"], descriptors=(writer,))
      self.assertEqual(talker.wait(10), 0)
      os.close(writer)
      self.assertEqual(end.read(), b"here\n")

  def test_nothing_outlives_the_block(self):
    with Processes(self.logs) as processes:
      deaf = processes.start("deaf", ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
      paused = processes.start("paused", ["sleep", "60"])
      paused.pause()
      self.assertTrue(wait_until(lambda: "deaf" in deaf.output(), 10))
    self.assertFalse(alive(deaf.pid))
    self.assertFalse(alive(paused.pid))

  def test_nothing_outlives_a_killed_owner(self):
    script = ("import pathlib, sys, time\nfrom testing.lab.processes import Processes\n"
              "print(Processes(pathlib.Path(sys.argv[1])).start('child', ['sleep', '60']).pid, flush=True)\ntime.sleep(60)\n")
    root = pathlib.Path(__file__).absolute().parents[2]
    with Processes(self.logs) as processes:
      owner = processes.start("owner", [sys.executable, "-c", script, str(self.logs)], {"PYTHONPATH": str(root)})
      self.assertTrue(wait_until(lambda: owner.output().endswith("\n"), 20), owner.errors())
      child = int(owner.output())
      self.assertTrue(alive(child))
      owner.send(signal.SIGKILL)
      self.assertTrue(wait_until(lambda: not alive(child), 10))

  def test_keeps_last_lines_and_exit_code(self):
    with Processes(self.logs) as processes:
      failing = processes.start("failing", ["sh", "-c", "echo one >&2; echo two >&2; exit 3"])
      self.assertEqual(failing.wait(10), 3)
      self.assertEqual(failing.last_lines(), "one | two")

  def test_names_a_program_that_is_missing(self):
    with Processes(self.logs) as processes, self.assertRaisesRegex(LabError, "lost.*/no/such/program"):
      processes.start("lost", ["/no/such/program"])

  def test_the_shell_does_not_leak_settings(self):
    os.environ["R2CC_MODE"] = "0"
    self.addCleanup(os.environ.pop, "R2CC_MODE")
    environment = clean_environment({"R2CC_RAILS": "rail0"})
    self.assertNotIn("R2CC_MODE", environment)
    self.assertEqual(environment["R2CC_RAILS"], "rail0")
