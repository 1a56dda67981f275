"""arguments.py: which flags fit together, and what the man page has of them."""

import contextlib
import io
import unittest

from deploy.drill import arguments


def parse(*words: str):
  return arguments.parse_arguments(words, lambda: "release 7")


class ArgumentsTest(unittest.TestCase):

  def refusal(self, *words: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stderr(output), self.assertRaises(SystemExit) as ended:
      parse(*words)
    self.assertEqual(ended.exception.code, arguments.EXIT_USAGE)
    self.assertEqual(output.getvalue().count("\n"), 1, output.getvalue())
    return output.getvalue()

  def test_defaults(self):
    options = parse()
    self.assertEqual((options.rig, options.no_daemon), ("tcp", False))
    self.assertEqual((options.rate, options.link_monitor, options.quick, options.plugin), ("500mbit", 1, False, None))

  def test_contradictions_are_refused(self):
    self.assertIn("contradict each other", self.refusal("--no-root", "--root-required"))
    self.assertIn("leave nobody to see a fault", self.refusal("--link-monitor", "0", "--no-daemon"))
    self.assertIn("write it like 500mbit", self.refusal("--rate", "fast"))
    for flags in (("--no-root",), ("--root-required",), ("--rate", "1gbit"), ("--link-monitor", "0")):
      self.assertIn(f"{flags[0]} is for TCP rails", self.refusal("--rig", "verbs", *flags))
    self.assertIn("--rig", self.refusal("--rig", "ring"))
    self.assertIn("--bogus", self.refusal("--bogus"))

  def test_rdma_rails_have_no_daemons(self):
    self.assertTrue(parse("--rig", "verbs").no_daemon)

  def test_the_version_is_asked_for(self):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), self.assertRaises(SystemExit) as ended:
      parse("--version")
    self.assertEqual((ended.exception.code, output.getvalue()), (0, "release 7\n"))

  def test_each_flag_is_described(self):
    described = arguments.describe(arguments.make_parser(str))
    options = {option["names"][-1]: option for option in described["options"]}
    self.assertEqual(set(options), {"--help", "--version", "--plugin", "--no-root", "--root-required", "--rate", "--no-daemon",
                                    "--link-monitor", "--quick", "--json", "--keep-logs", "--rig"})
    self.assertEqual(options["--help"]["names"], ["-h", "--help"])
    self.assertEqual(options["--quick"]["value"], "")
    self.assertEqual(options["--plugin"]["value"], "PATH")
    self.assertEqual((options["--link-monitor"]["value"], options["--link-monitor"]["choices"]), ("0|1", ["0", "1"]))
    self.assertEqual(options["--rate"]["text"], "of one rail, in namespaces (default: 500mbit)")
