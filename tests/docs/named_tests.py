"""Names of tests in documents: each is one that exists."""

import re

# In the last column: `Suite.Case`, `.Case` of the suite named before, `Suite`, `Struct::Function`, `//label`; or "the same" as the row
# above.
NAME = re.compile(r"`([^`]+)`")
CASE = re.compile(r"\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\)")


def cases(sources) -> dict[str, set[str]]:
  """What GoogleTest runs: the cases of each suite."""
  found: dict[str, set[str]] = {}
  for source in sources:
    if source.path.endswith(("_test.cc", "_cases.cc")):
      for suite, case in CASE.findall(source.text):
        found.setdefault(suite, set()).add(case)
  return found


def missing(name: str, suite: str, known: dict[str, set[str]], sources) -> str | None:
  """What of `name` there is not; None: it exists. `suite`: the one named before it."""
  texts = {source.path: source.text for source in sources}
  if name.startswith("//"):
    package, _, target = name[2:].partition(":")
    return None if f'"{target}"' in texts.get(f"{package}/BUILD.bazel", "") else f"no target {name}"
  if "::" in name:
    function = name.partition("::")[2]
    holds = any(re.search(rf"\b{function}\(", text) for path, text in texts.items() if path.endswith((".cc", ".h")))
    return None if holds else f"no function {name}"
  suite, _, case = (suite + name if name.startswith(".") else name).partition(".")
  if suite not in known:
    return f"no suite {suite}"
  return None if not case or case in known[suite] else f"no case {suite}.{case}"
