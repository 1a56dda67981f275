"""Links and paths in documents: each leads to a file of the tree, and to a heading of it."""

import posixpath
import re

_FENCE = re.compile(r"^\s*(```|~~~).*?^\s*\1[^\n]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)
# A page as sources and pages name it without a link.
_PATH = re.compile(r"(?<![\w/.-])((?:docs/[\w./-]+|ARCHITECTURE|CHANGELOG|CONTRIBUTING|README)\.md)\b")


def anchors(page: str) -> set[str]:
  """What a link may name behind `#`, as the repository's host makes it of the headings."""
  found: dict[str, int] = {}
  names = set()
  for heading in _HEADING.findall(_FENCE.sub("", page)):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    count = found.get(name, 0)
    found[name] = count + 1
    names.add(f"{name}-{count}" if count else name)
  return names


def targets(page: str) -> list[tuple[int, str]]:
  """(line, target) of each link that leads to the tree."""
  def blank(found):
    return "\n" * found.group(0).count("\n")
  text = re.sub(r"`[^`\n]*`(?!\])", blank, _FENCE.sub(blank, page))  # a link's text may go on in the next line
  return [(text.count("\n", 0, found.start()) + 1, found.group(1)) for found in _LINK.finditer(text)
          if "://" not in found.group(1) and not found.group(1).startswith("mailto:")]


def broken(pages: dict[str, str], exists) -> list[str]:
  """`pages`: path -> text. `exists`: whether a path of the tree does."""
  found = []
  for path, page in pages.items():
    for number, target in targets(page):
      file, _, anchor = target.partition("#")
      to = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
      if not exists(to):
        found.append(f"{path}:{number}: {target}: there is no {to}")
      elif anchor and to in pages and anchor not in anchors(pages[to]):
        found.append(f"{path}:{number}: {target}: {to} has no such heading")
  return found


def named(text: str) -> set[str]:
  """The pages that a source names by their paths from the root."""
  return set(_PATH.findall(text))
