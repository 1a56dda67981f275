"""base/event_kinds.h and docs/operate/alarms-and-events.md have the kinds of events that r2ccd reports, and no others."""

import pathlib
import re
import unittest

from tests.tidy import tree

# A kind is the first argument of these; an alternative is behind a question mark.
REPORTS = re.compile(r'(?:\bNew|(?<!\w)Report)\(\s*((?:\w+ \? "[a-z-]+" : )*)"([a-z]+(?:-[a-z]+)*)",')


def reported(text: str) -> set[str]:
  """The kinds that a source file reports."""
  kinds = set()
  for alternatives, kind in REPORTS.findall(text):
    kinds |= {kind, *re.findall(r'"([a-z-]+)"', alternatives)}
  return kinds


class EventKindsTest(unittest.TestCase):

  def test_the_list_is_what_the_daemon_reports(self):
    root = pathlib.Path(tree.workspace_root())
    header = (root / "base/event_kinds.h").read_text(encoding="utf-8")
    listed = re.findall(r'"([a-z-]+)"', header[header.index("kEventKinds[]"):header.index("};")])
    self.assertEqual(listed, sorted(listed))
    kinds = set()
    for path in (root / "daemon").rglob("*"):
      if path.suffix in (".cc", ".h") and not path.name.endswith(("_test.cc", "_rig.h")):
        kinds |= reported(path.read_text(encoding="utf-8"))
    self.assertEqual(kinds, set(listed))

  def test_the_page_has_every_kind(self):
    root = pathlib.Path(tree.workspace_root())
    header = (root / "base/event_kinds.h").read_text(encoding="utf-8")
    listed = re.findall(r'"([a-z-]+)"', header[header.index("kEventKinds[]"):header.index("};")])
    page = (root / "docs/operate/alarms-and-events.md").read_text(encoding="utf-8")
    self.assertEqual(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE), listed)

  def test_how_a_kind_is_found(self):
    self.assertEqual(reported('reporter_->Report("state", alarm);'), {"state"})
    self.assertEqual(reported('reporter_->New(fenced ? "failover" : unproven ? "link-unproven" : "link-up", text);'),
                     {"failover", "link-unproven", "link-up"})
    self.assertEqual(reported('sheep.MisReport("no-kind", 1);'), set())


if __name__ == "__main__":
  unittest.main()
