"""Pages are plain English, and their diagrams can be drawn."""

import unittest

from tests.tidy import mermaid
from tests.tidy import pages
from tests.tidy import prose
from tests.tidy import tree

PAGE = """# Title

The daemon sends a view. It has *two* parts, see [the page](a.md):

    code, anew

- one item
  that goes on;

| a table | anew |
```
anew
```
"""
FLOW = "```mermaid\nflowchart LR\n  a[\"A (b)\"] -->|c| d\n```\n"
STATES = "```mermaid\nstateDiagram-v2\n  [*] --> a\n  a --> b : go / do\n```\n"
SEQUENCE = "```mermaid\nsequenceDiagram\n  participant S as Sender\n  participant R\n  S->>R: chunk 1\n  Note over S: waits\n```\n"


class PagesTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.pages = {source.path: source.text for source in tree.read_sources(tree.workspace_root()) if source.path.endswith(".md")}

  def test_every_page_is_plain_english(self):
    lines = [f"{path}:{number}: {message}" for path, page in self.pages.items() if path not in pages.NOT_REWRITTEN
             for number, message in prose.violations(page)]
    self.assertEqual(lines, [])

  def test_a_page_that_keeps_to_the_rules_leaves_the_list(self):
    self.assertLessEqual(pages.NOT_REWRITTEN, set(self.pages))
    self.assertEqual([path for path in sorted(pages.NOT_REWRITTEN) if not prose.violations(self.pages[path])], [])

  def test_every_diagram_can_be_drawn(self):
    lines = [f"{path}:{number}: {message}" for path, page in self.pages.items() for number, message in mermaid.violations(page)]
    self.assertEqual(lines, [])
    self.assertGreater(sum(len(mermaid.diagrams(page)) for page in self.pages.values()), 3)

  def test_limits_of_every_page(self):
    for path in sorted(self.pages):
      measured = prose.statistics(self.pages[path])
      print(f"{path}: {measured.lines} lines, {measured.words} words, {measured.words_per_heading:.0f} words a heading, "
            f"{measured.sentences} sentences, mean {measured.sentence_words_mean:.1f}, longest {measured.sentence_words_max}, "
            f"longest paragraph {measured.paragraph_words_max}")


class ProseTest(unittest.TestCase):

  def test_recognises_prose(self):
    self.assertEqual([block.text for block in prose.blocks(PAGE)],
                     ["The daemon sends a view. It has two parts, see the page:", "one item that goes on;"])
    self.assertEqual(prose.violations(PAGE), [])

  def test_sentences(self):
    self.assertEqual(prose.sentences("It is 0.5 s, e.g. at a cut. Is it? **Yes.** a.cc:F and"),
                     ["It is 0.5 s, e.g. at a cut.", "Is it?", "Yes.", "a.cc:F and"])
    self.assertEqual(prose.words("At 1.5 Gbit/s a rail's `CODE` - has 1,024 NICs."), 9)

  def test_bad_pages_are_refused(self):
    for page, message in (("Of all rails one is left.", "begins with a clause"), ("It is sent anew.", "again, or new"),
                          ("This stands beside it.", "be, or appear"), (" ".join(["word"] * 41) + ".", "a sentence of 41 words"),
                          (" ".join(["It is so."] * 27), "a paragraph of 81 words"),
                          (" ".join(["a b c d e f g h i j k l m n o p q r s."] * 2), "in the mean"),
                          ("\n\n".join(["It is so."] * 70), "words a heading"), ("The last word of a peer.", "message")):
      with self.subTest(page=page[:40]):
        self.assertTrue(any(message in found for _, found in prose.violations(page)), prose.violations(page))

  def test_exceptions_are_accepted(self):
    for page in ("What is a rail?", "Besides, `anew` is code.", "# Of rails\n\nIt understands.", "A standing order."):
      self.assertEqual(prose.violations(page), [], page)


class MermaidTest(unittest.TestCase):

  def test_diagrams(self):
    for page in (FLOW, STATES, SEQUENCE):
      self.assertEqual(mermaid.violations(page), [])
      self.assertEqual(len(mermaid.diagrams(page)), 1)

  def test_bad_pages_are_refused(self):
    for page, old, new, message in ((FLOW, "-->|c|", "--|c|", "no node or arrow"), (FLOW, 'a["A (b)"]', "a[A (b)]", "no node or arrow"),
                                    (FLOW, " d", " end", "keyword"), (STATES, "a --> b", "b --> a", "nothing leads to the state b"),
                                    (STATES, "a --> b", "a -> b", "no transition"), (SEQUENCE, "S->>R", "S->>T", "T is no participant"),
                                    (SEQUENCE, "chunk 1", "chunk; 1", "no participant, message"), (FLOW, "flowchart LR", "pie", "kind"),
                                    (FLOW, "\n```\n", "\n", "does not end")):
      with self.subTest(page=new):
        violations = mermaid.violations(page.replace(old, new))
        self.assertTrue(any(message in found for _, found in violations), violations)


if __name__ == "__main__":
  unittest.main()
