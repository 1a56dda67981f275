"""Checks Mermaid diagrams: the three kinds that the pages use, line by line, so that the repository's host draws each.

It knows the part of Mermaid's language that the pages need and refuses the rest. A line that it refuses may be right: then extend it here.
"""

import re

_TEXT = r"[^\"#;|\[\]{}]+"
_NODE = rf"(\w+)(?:\[\"{_TEXT}\"\])?"
_ARROW = r"(?:-->|<-->|-\.->|---)"
_FLOW = re.compile(rf"{_NODE}(?: {_ARROW}(?:\|{_TEXT}\|)? {_NODE})?")
_STATE = re.compile(r"(\w+|\[\*\]) --> (\w+|\[\*\])(?: : [^:;#]+)?")
_PARTICIPANT = re.compile(r"(?:participant|actor) (\w+)(?: as [^;#]+)?")
_MESSAGE = re.compile(r"(\w+)(?:->>|-->>|-x|--x)(\w+): [^;#]+")
_NOTE = re.compile(r"Note (?:over|left of|right of) (\w+)(?:,(\w+))?: [^;#]+")
_KEYWORDS = {"end", "graph", "subgraph", "state", "note", "class", "click", "style"}


def diagrams(page: str) -> list[tuple[int, str]]:
  """(line, text) of each diagram of a page."""
  return [(page.count("\n", 0, found.start()) + 1, found.group(1))
          for found in re.finditer(r"^```mermaid\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]


def _flowchart(lines):
  for number, line in lines:
    found = _FLOW.fullmatch(line)
    if found is None:
      yield number, f"no node or arrow: {line}"
    elif _KEYWORDS & {name.lower() for name in found.groups() if name}:
      yield number, f"a node has the name of a keyword: {line}"


def _states(lines):
  arrows = []
  for number, line in lines:
    found = _STATE.fullmatch(line)
    if found is None:
      yield number, f"no transition: {line}"
    elif _KEYWORDS & {name.lower() for name in found.groups()}:
      yield number, f"a state has the name of a keyword: {line}"
    else:
      arrows.append(found.groups())
  reached = {"[*]"}
  while True:
    more = {to for source, to in arrows if source in reached} - reached
    if not more:
      break
    reached |= more
  for lost in sorted({name for arrow in arrows for name in arrow} - reached):
    yield lines[0][0], f"nothing leads to the state {lost}"


def _sequence(lines):
  known = set()
  for number, line in lines:
    if participant := _PARTICIPANT.fullmatch(line):
      known.add(participant.group(1))
      continue
    found = _MESSAGE.fullmatch(line) or _NOTE.fullmatch(line)
    if found is None:
      yield number, f"no participant, message or note: {line}"
    else:
      for name in found.groups():
        if name is not None and name not in known:
          yield number, f"{name} is no participant: {line}"


_KINDS = {r"flowchart (?:LR|TD|TB|RL|BT)": _flowchart, r"stateDiagram-v2": _states, r"sequenceDiagram": _sequence}


def violations(page: str) -> list[tuple[int, str]]:
  """(line number, message) of what is wrong with the diagrams of a page."""
  found = []
  if page.count("```mermaid") != len(diagrams(page)):
    found.append((1, "a Mermaid block that does not end, or is indented"))
  for first, text in diagrams(page):
    lines = [(first + number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    kind = next((check for pattern, check in _KINDS.items() if lines and re.fullmatch(pattern, lines[0][1])), None)
    if kind is None or len(lines) < 2:
      found.append((first, f"no diagram of a kind that is known: {lines[0][1] if lines else 'empty'}"))
    else:
      found += kind(lines[1:])
  return found
