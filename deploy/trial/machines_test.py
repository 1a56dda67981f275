import os
import pathlib
import tempfile
import unittest

from deploy.trial.machines import Here, RemoteProcesses, There, run
from testing.lab.lab import LabError
from testing.lab.processes import Processes, wait_until

# What sshd does with the words: one string, for a shell.
SSH = ["sh", "-c", 'exec sh -c "$1"', "ssh"]


class MachinesTest(unittest.TestCase):

  def test_arguments_arrive_unchanged(self):
    for machine in (Here("a"), There("b", SSH)):
      self.assertEqual(run(machine, ["printf", "%s|", "a b", "$HOME", "'", '"', "*"]), "a b|$HOME|'|\"|*|")

  def test_a_failure_is_one_line(self):
    with self.assertRaisesRegex(LabError, "^b: sh -c 'echo no >&2; exit 3': no$"):
      run(There("b", SSH), ["sh", "-c", "echo no >&2; exit 3"])
    with self.assertRaisesRegex(LabError, "there is no /nonexistent/ssh; install it"):
      run(There("b", ["/nonexistent/ssh"]), ["true"])

  def test_a_remote_program_ends_with_its_connection(self):
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    with Processes(folder) as processes:
      with RemoteProcesses(processes) as remote:
        connection = remote.start(There("b", SSH), "sleeper", ["sh", "-c", f"echo $$ > {folder}/pid; exec sleep 1000"], {})
        self.assertTrue(wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text() != "", 20))
        pid = int((folder / "pid").read_text())
        self.assertTrue(os.path.exists(f"/proc/{pid}"))
        self.assertIsNone(connection.poll())
      gone = lambda: not os.path.exists(f"/proc/{pid}") or pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
      self.assertTrue(wait_until(gone, 20), "it outlived its connection")

  def test_a_remote_program_that_ends_is_seen(self):
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    with Processes(folder) as processes, RemoteProcesses(processes) as remote:
      connection = remote.start(There("b", SSH), "short", ["sh", "-c", "echo out; echo err >&2; exit 7"], {"A": "b c"})
      self.assertEqual(connection.wait(20), 7)
      self.assertEqual(((folder / "short.out").read_text(), (folder / "short.err").read_text()), ("out\n", "err\n"))
