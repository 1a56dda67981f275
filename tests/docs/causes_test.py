"""client/core/causes.cc explains every evidence and every verdict, and docs/reference/causes.md quotes lines that the plugin logs."""

import pathlib
import re
import unittest

from tests.tidy import tree

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def read(path: str) -> str:
  return (pathlib.Path(tree.workspace_root()) / path).read_text(encoding="utf-8")


def body(text: str, begin: str, end: str = "\n}") -> str:
  """From `begin` to the next `end`."""
  at = text.index(begin)
  return text[at:text.index(end, at)]


def names(table: str) -> list[str]:
  """The first string of each row of a table in C++."""
  return re.findall(r'^    \{"([a-z-]+)", ', body(read("client/core/causes.cc"), table, "\n};"), re.MULTILINE)


class CausesTest(unittest.TestCase):

  def test_every_evidence_is_explained_in_the_order_of_the_enum(self):
    kinds = re.findall(r'return "([a-z-]+)";', body(read("health/evidence/evidence.cc"), "const char* EvidenceKindName"))
    self.assertEqual(kinds.pop(), "unknown")
    self.assertEqual(names("kEvidence[]"), kinds)

  def test_every_verdict_is_explained(self):
    kinds = set(re.findall(r'return "([a-z-]+)";', body(read("health/view/localise.cc"), "const char* FaultKindName"))) - {"unknown"}
    kinds |= set(re.findall(r'(?:return|verdict =) \{\s*"([a-z-]+)",', read("daemon/services/explain_service.cc")))
    self.assertIn("operator", kinds)
    self.assertIn("measured", kinds)
    self.assertEqual(set(names("kVerdicts[]")), kinds)

  def logged(self, folder: str) -> str:
    """All strings of its sources, a line each."""
    return "\n".join(string for path in (pathlib.Path(tree.workspace_root()) / folder).rglob("*")
                     if path.suffix in (".cc", ".h") and not path.name.endswith("_test.cc")
                     for string in STRING.findall(path.read_text(encoding="utf-8")))

  def test_every_quoted_line_is_logged(self):
    lines = re.findall(r"^\| (always|info|warn|info, or warn) \| `([^`]+)` \|", read("docs/reference/causes.md"), re.MULTILINE)
    self.assertGreater(len(lines), 20)
    plugin, profiler, seat = self.logged("netplugin"), self.logged("nccl/profiler"), self.logged("nccl")
    for level, line in lines:
      self.assertIn(line, plugin + seat)
      # libr2cc-nccl.so writes to standard error, whatever R2CC_LOG is.
      self.assertEqual(level == "always", line not in plugin + profiler, line)


if __name__ == "__main__":
  unittest.main()
