"""Measures the prose of a Markdown page: sentences, paragraphs, headings, words that the project does not use.

Tables, code, links' targets and headings are no prose. A list item is a paragraph.
"""

import dataclasses
import re

# leveldb's impl.md and TigerBeetle's ARCHITECTURE.md keep to these: p90 of paragraphs 84 and 73 words, 104 and 198 words a heading.
SENTENCE_WORDS_MEAN_MAX = 18
SENTENCE_WORDS_MAX = 40
PARAGRAPH_WORDS_MAX = 80
WORDS_PER_HEADING_MAX = 200

# A relative clause at the front hides who acts. A question ends with its mark and is none.
OPENINGS = re.compile(r"(?:Of|Where|What|Whatever|Who|Whoever|Whose|Which|So that)\b")
BANNED = {
    r"\banew\b": "again, or new",
    r"\bbeside\b": "next to, or in addition to",
    r"\blikewise\b": "also, or the same",
    r"\bso many\b": "N",
    r"\bby (?:itself|themselves)\b": "automatically, or alone",
    r"\bwho(?:so)?ever\b": "the actor's name",
    r"\bt(?:ell|ells|old|elling)\b": "report, notify, or send",
    r"\bsa(?:y|ys|id|ying)\b": "state, report, or send",
    r"\bst(?:and|ands|ood)\b": "be, or appear",
    r"\bwords? (?:of|from|about)\b|\b(?:operator|peer|node|job|last|latest)(?:'s|s'|) words?\b": "report, setting, or message",
    r"\bmay not be to be had\b|\bto be had\b": "available",
}

_MARK = re.compile(r"[.?!](?=[\"')*_]*(?:\s|$))")
# A mark behind these ends no sentence.
_ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx)\.$")


@dataclasses.dataclass(frozen=True)
class Block:
  """One paragraph or list item: the line it begins at, and its text without markup."""
  line: int
  text: str


def plain(text: str) -> str:
  """Without markup: a piece of code, a link and an image are what the reader sees."""
  text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
  text = re.sub(r"`[^`]*`", "CODE", text)
  return re.sub(r"\s+", " ", re.sub(r"\*\*|__|(?<!\w)[*_]|[*_](?!\w)|<[^>]+>", "", text)).strip()


def blocks(page: str) -> list[Block]:
  """The prose of a page."""
  found: list[Block] = []
  lines: list[str] = []
  begin, fenced, in_list = 0, False, False

  def end():
    if lines:
      text = plain(" ".join(lines))
      if text:
        found.append(Block(begin, text))
      lines.clear()

  for number, line in enumerate(page.splitlines(), 1):
    if re.match(r"\s*(```|~~~)", line):
      end()
      fenced = not fenced
    elif fenced:
      continue
    elif not line.strip():
      end()
    elif re.match(r"#{1,6} |\s*\||\s*<!--|---+$", line):
      end()
      in_list = False
    elif re.match(r"\s*(?:[-*+]|\d+\.) ", line):
      end()
      begin, in_list = number, True
      lines.append(re.sub(r"^\s*(?:[-*+]|\d+\.) ", "", line))
    elif line.startswith("    ") and not lines and not in_list:
      continue  # code
    else:
      if not lines:
        begin = number
        in_list = in_list and line.startswith(" ")
      lines.append(line)
  end()
  return found


def sentences(text: str) -> list[str]:
  """The sentences of a block."""
  found, begin = [], 0
  for mark in _MARK.finditer(text):
    if _ABBREVIATIONS.search(text[:mark.end()]):
      continue
    found.append(text[begin:mark.end()].strip(" \"')*_"))
    begin = mark.end()
  found.append(text[begin:].strip(" \"')*_"))
  return [sentence for sentence in found if words(sentence)]


def words(text: str) -> int:
  return len(re.findall(r"[^\W_][\w'-]*(?:[./:,][\w-]+)*", text))


@dataclasses.dataclass(frozen=True)
class Statistics:
  """What is measured of a page."""
  lines: int
  words: int
  headings: int
  sentences: int
  sentence_words_mean: float
  sentence_words_max: int
  paragraph_words_max: int

  @property
  def words_per_heading(self) -> float:
    return self.words / max(1, self.headings)


def statistics(page: str) -> Statistics:
  found = blocks(page)
  lengths = [words(sentence) for block in found for sentence in sentences(block.text)]
  code = re.sub(r"^\s*(```|~~~).*?^\s*\1", "", page, flags=re.MULTILINE | re.DOTALL)
  return Statistics(page.count("\n"), sum(words(block.text) for block in found), len(re.findall(r"^#{1,6} ", code, re.MULTILINE)),
                    len(lengths), sum(lengths) / max(1, len(lengths)), max(lengths, default=0),
                    max((words(block.text) for block in found), default=0))


def violations(page: str) -> list[tuple[int, str]]:
  """(line number, message) of all that a page must not do."""
  found = []
  for block in blocks(page):
    if words(block.text) > PARAGRAPH_WORDS_MAX:
      found.append((block.line, f"a paragraph of {words(block.text)} words, at most {PARAGRAPH_WORDS_MAX}: {block.text[:60]}"))
    for sentence in sentences(block.text):
      if words(sentence) > SENTENCE_WORDS_MAX:
        found.append((block.line, f"a sentence of {words(sentence)} words, at most {SENTENCE_WORDS_MAX}: {sentence[:60]}"))
      if OPENINGS.match(sentence) and not sentence.endswith("?"):
        found.append((block.line, f"begins with a clause, name the actor first: {sentence[:60]}"))
    for pattern, instead in BANNED.items():
      for word in re.finditer(pattern, block.text, re.IGNORECASE):
        found.append((block.line, f"`{word.group(0)}`: write {instead}"))
  measured = statistics(page)
  if measured.sentence_words_mean > SENTENCE_WORDS_MEAN_MAX:
    found.append((1, f"sentences have {measured.sentence_words_mean:.1f} words in the mean, at most {SENTENCE_WORDS_MEAN_MAX}"))
  if measured.words_per_heading > WORDS_PER_HEADING_MAX:
    found.append((1, f"{measured.words_per_heading:.0f} words a heading, at most {WORDS_PER_HEADING_MAX}"))
  return sorted(found)
