import contextlib
import io
import unittest

from deploy.trial.arguments import parse_arguments


class ArgumentsTest(unittest.TestCase):

  def refused(self, *arguments: str) -> str:
    output = io.StringIO()
    with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(output):
      parse_arguments(arguments, lambda: "version")
    self.assertEqual(ended.exception.code, 2)
    self.assertEqual(output.getvalue().count("\n"), 1)
    return output.getvalue()

  def test_the_ports_are_paired_by_their_place(self):
    self.assertEqual(parse_arguments(["--peer", "b", "eth1,eth2"], lambda: "").pairs, [("eth1", "eth1"), ("eth2", "eth2")])
    options = parse_arguments(["--peer", "root@b", "eth1,eth2", "--peer-ports", "ens5,ens6", "--ssh", "ssh -p 22 -i 'a key'"], lambda: "")
    self.assertEqual(options.pairs, [("eth1", "ens5"), ("eth2", "ens6")])
    self.assertEqual(options.ssh_command, ["ssh", "-p", "22", "-i", "a key"])

  def test_what_cannot_be_tried_is_one_line(self):
    self.assertIn("--peer", self.refused("eth1,eth2"))
    self.assertIn("'eth1' is one port", self.refused("--peer", "b", "eth1"))
    self.assertIn("each once", self.refused("--peer", "b", "eth1,eth1"))
    self.assertIn("each once", self.refused("--peer", "b", "eth1,"))
    self.assertIn("2 ports here and 3 at b", self.refused("--peer", "b", "eth1,eth2", "--peer-ports", "a,b,c"))
    self.assertIn("--port is", self.refused("--peer", "b", "eth1,eth2", "--port", "80"))
    self.assertIn("--peer is a host", self.refused("--peer=-oProxyCommand=x", "eth1,eth2"))
    self.assertIn("--ssh", self.refused("--peer", "b", "eth1,eth2", "--ssh", "a 'b"))
