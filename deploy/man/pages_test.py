"""pages.py: what it makes of a program's tree, of a .proto file and of the table of variables."""

import json
import unittest

from deploy.config import commented
from deploy.man import pages


def _option(name, text, **more):
  return {"names": [name], "value": "", "text": text, "default": "", "choices": [], "positional": False, "required": False, **more}


HELP = _option("-h", "help", names=["-h", "--help"])
DRAIN = {"name": "drain", "text": "stops it", "commands": [],
         "options": [_option("NODE/NIC", "which", positional=True, required=True), _option("--wait", "until")]}
TREE = {"name": "tool", "text": "does", "options": [HELP, _option("--run_dir", "where", value="DIR", default="/run")],
        "commands": [{"name": "nic", "text": "group", "options": [], "commands": [DRAIN]}]}
PROTO = """
message DaemonConfig {
  // Empty: the host's name, `--node`.
  string node = 1;
  repeated PeerConfig peers = 2;
}
// Others.
message PeerConfig {
  string address = 1;
}
"""
TABLE = "| `R2CC_LOG` | `warn` | how much: `warn`, or more, see [logs](../logs.md) |\n"


class PagesTest(unittest.TestCase):

  def test_options(self):
    page = pages.page("# OPTIONS\n\n@OPTIONS tool@\n\n# END\n", {"tool": json.dumps(TREE)})
    self.assertIn("*--run\\_dir* _DIR_\n\twhere (default: /run)\n", page)
    self.assertIn("*-h*, *--help*\n", page)
    self.assertNotIn("\n\n\n", page)

  def test_commands(self):
    page = pages.page("@COMMANDS tool@\n", {"tool": json.dumps(TREE)})
    self.assertIn("*tool nic drain* [options] _NODE/NIC_\n\tStops it.\n", page)
    self.assertIn("\t*--wait*\n\t\tuntil\n", page)
    self.assertNotIn("*tool nic*", page)

  def test_fields(self):
    page = pages.page("@FIELDS config@\n", {"config": PROTO})
    self.assertIn('*node*: "node0"\n\tEmpty: the host\'s name, *--node*.\n', page)
    self.assertIn("*peers* { ... }\n\tOthers. May be repeated.\n\n\t*address*: ", page)
    with self.assertRaises(KeyError):
      pages.fields({"DaemonConfig": commented.Message([], [commented.Field("unheard_of", "string", False, [])])})

  def test_variables(self):
    page = pages.page("@VARIABLES listed table@\n", {"listed": "R2CC_LOG\twarn, info or debug\n", "table": TABLE})
    self.assertEqual(page, "*R2CC\\_LOG*\n\tHow much: *warn*, or more, see logs. May be: warn, info or debug. Default: *warn*.\n\n")

  def test_a_variable_that_one_side_does_not_know_is_refused(self):
    for listed in ("", "R2CC_LOG\twarn\nR2CC_NEW\t1\n"):
      with self.assertRaises(pages.PageError):
        pages.variables(listed, TABLE)

  def test_signs_stay_signs(self):
    self.assertEqual(pages.plain("a_b *c* \\ <d> [e] #1"), "a\\_b \\*c\\* \\\\ \\<d\\> \\[e\\] \\#1")
