"""Each link of a page leads somewhere, each page that a source names exists, and all pages of docs/ are installed."""

import pathlib
import re
import unittest

from tests.docs import links
from tests.tidy import tree


class LinksTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.root = pathlib.Path(tree.workspace_root())
    cls.sources = tree.read_sources(str(cls.root))
    cls.pages = {source.path: source.text for source in cls.sources if source.path.endswith(".md")}

  def test_every_link_leads_to_a_file_and_a_heading(self):
    self.assertGreater(len(self.pages), 10)
    self.assertEqual(links.broken(self.pages, lambda path: (self.root / path).exists()), [])

  def test_every_page_that_a_source_names_exists(self):
    files = [(source.path, source.text) for source in self.sources]
    for path in (self.root / "deploy").rglob("*"):  # control files, man pages, unit files: not all are sources
      if path.is_file() and path.suffix in (".scd", ".control", ".Debian", ".service", ".example"):
        files.append((str(path.relative_to(self.root)), path.read_text(encoding="utf-8")))
    missing = [f"{path}: {page}" for path, text in files if not path.startswith(("tests/docs/", "tests/tidy/", "docs/figures/"))
               for page in sorted(links.named(text)) if page.startswith("docs/") and not (self.root / page).exists()]
    self.assertEqual(missing, [])

  def test_all_pages_are_installed(self):
    listed = re.findall(r'"([^"]+\.md)"', (self.root / "docs/documents.bzl").read_text(encoding="utf-8"))
    self.assertEqual(listed, sorted(listed))
    self.assertEqual(listed, sorted(path.removeprefix("docs/") for path in self.pages
                                    if path.startswith("docs/") and not path.startswith("docs/figures/")))

  def test_finds_links_and_anchors(self):
    pages = {"a.md": "# The `nic` list, and more\n\n## Twice\n## Twice\n[x](b/c.md#see)\n```\n[x](none.md)\n```\n[`code`](#twice-1)\n",
             "b/c.md": "# See\n[up](../a.md#the-nic-list-and-more) [gone](../d.md) [no\nway](../a.md#three)\n"}
    self.assertEqual(links.broken(pages, lambda path: path in pages),
                     ["b/c.md:2: ../d.md: there is no d.md", "b/c.md:2: ../a.md#three: a.md has no such heading"])
    self.assertEqual(links.named("see docs/a/b.md, and x/docs/c.md; docs/d.md."), {"docs/a/b.md", "docs/d.md"})


if __name__ == "__main__":
  unittest.main()
