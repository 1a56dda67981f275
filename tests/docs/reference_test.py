"""docs/reference has what reference.py makes of the .proto files."""

import pathlib
import re
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

  def test_each_type_that_a_page_names_is_described_there(self):
    root = pathlib.Path(tree.workspace_root())
    for name, text in reference.pages(lambda path: (root / path).read_text(encoding="utf-8")).items():
      described = set(re.findall(r"^## (\S+)$", text, re.MULTILINE))
      named = set(re.findall(r"\b[A-Z][a-z]\w+", " ".join(re.findall(r"^\| `\w+` \| ([^|]+) \|[^|]*\|$", text, re.MULTILINE))))
      self.assertGreater(len(named & described), 5)
      self.assertEqual({one for one in named - described if not any(section.endswith("." + one) for section in described)}, set(), name)

  def test_messages_of_other_files_that_the_services_use(self):
    files = {"proto/a.proto": 'import "proto/b.proto";\nservice S {\n  rpc Do(Ask) returns (Reply);\n}\n',
             "proto/b.proto": 'import "proto/c.proto";\nmessage Ask {}\nmessage Reply {\n  Part part = 1;\n}\nmessage Unused {\n}\n',
             "proto/c.proto": "message Part {\n  string a = 1;\n}\n"}
    self.assertEqual([one.name for one in reference.read_with_imports("proto/a.proto", files.__getitem__)], ["S", "Ask", "Reply", "Part"])

  def test_reads_declarations(self):
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
