"""docs/reference has what reference.py makes of the .proto files."""

import pathlib
import unittest

from tests.docs import reference
from tests.tidy import tree

PROTO = """
// ---- head ----

// One NIC.
message Nic {
  // Its name.
  string name = 1;
  repeated Hop hops = 2;  // nearest first
  enum Kind {
    NONE = 0;
  }
  message Hop {
    uint32 weight = 1;
  }
  oneof one {
    string a = 3;
  }
}
service Control {
  // Lists.
  rpc List(Nic) returns (stream Nic);
}
"""


class ReferenceTest(unittest.TestCase):

  def test_the_pages_are_what_the_sources_give(self):
    root = pathlib.Path(tree.workspace_root())
    for name, text in reference.pages(lambda path: (root / path).read_text(encoding="utf-8")).items():
      kept = (root / reference.FOLDER / name).read_text(encoding="utf-8")
      self.assertEqual(kept, text, f"{name} is not what the .proto file gives: {reference.COMMAND}")
      self.assertGreater(text.count("\n## "), 5)

  def test_what_is_read(self):
    declarations = reference.read(PROTO)
    self.assertEqual([(one.kind, one.name, one.text) for one in declarations],
                     [("message", "Nic", "One NIC."), ("enum", "Nic.Kind", ""), ("message", "Nic.Hop", ""), ("service", "Control", "")])
    self.assertEqual(declarations[0].members,
                     [("name", "string", "Its name."), ("hops", "repeated Hop", "nearest first"), ("a", "string", "")])
    self.assertEqual(declarations[3].members, [("List", "Nic to stream Nic", "Lists.")])
    with self.assertRaises(ValueError):
      reference.read("message M {\n  string a = 1; string b = 2;\n}\n")


if __name__ == "__main__":
  unittest.main()
