"""How heavy the tree is: lines, layers and cycles of folders, fields and public functions of the largest classes, constants.

    ./bazelw run //tests/tidy:counts

Each figure is to fall. Nothing is judged here: a change shows the figures before and after it.
"""

import collections
import re
import sys
from typing import Iterable, Mapping

from tests.tidy import rules
from tests.tidy import tree

DATA_PLANE = ("netplugin/flow/", "netplugin/link/", "netplugin/rails/", "netplugin/transport/", "netplugin/collnet/")
# Classes that other parts are reached through: how much one has to know to use or to change them.
LARGE = (("daemon/wiring.h", "Wiring"), ("netplugin/link/send_session.h", "SendSession"),
         ("netplugin/link/recv_session.h", "RecvSession"), ("daemon/services/core_backend.h", "CoreBackend"))
_INCLUDE = re.compile(r'^#include "([^"]+)/[^/"]+"', re.MULTILINE)


def folder(path: str) -> str:
  return path.rsplit("/", 1)[0]


def arrows(sources: Iterable[rules.Source]) -> dict[str, set[str]]:
  """folder -> the folders that its C++ includes; tests and fakes are no arrows of the product."""
  graph: dict[str, set[str]] = collections.defaultdict(set)
  for source in sources:
    if source.is_cpp() and not source.is_test() and "fake" not in source.path:
      own = folder(source.path)
      graph[own] |= {other for other in _INCLUDE.findall(source.text) if other != own}
  return graph


def components(graph: Mapping[str, set[str]]) -> list[set[str]]:
  """Strongly connected ones, each before those that use it (Tarjan, without recursion)."""
  index: dict[str, int] = {}
  low: dict[str, int] = {}
  path: list[str] = []
  found: list[set[str]] = []
  for root in sorted(graph):
    if root in index:
      continue
    index[root] = low[root] = len(index)
    path.append(root)
    work = [(root, iter(sorted(graph[root])))]
    while work:
      node, others = work[-1]
      for other in others:
        if other not in index:
          index[other] = low[other] = len(index)
          path.append(other)
          work.append((other, iter(sorted(graph.get(other, ())))))
          break
        if other in path:
          low[node] = min(low[node], index[other])
      else:
        work.pop()
        if work:
          low[work[-1][0]] = min(low[work[-1][0]], low[node])
        if low[node] == index[node]:
          at = path.index(node)
          found.append(set(path[at:]))
          del path[at:]
  return found


def layers(graph: Mapping[str, set[str]]) -> dict[str, int]:
  """folder -> the longest way down from it, in folders; those of a cycle have one layer."""
  layer: dict[str, int] = {}
  for group in components(graph):
    below = {other for node in group for other in graph.get(node, ())} - group
    depth = 1 + max((layer[other] for other in below), default=0)
    layer.update({node: depth for node in group})
  return layer


def below(graph: Mapping[str, set[str]], top: str) -> dict[str, set[str]]:
  """The part of the graph that is `top` and the folders in it."""
  def inside(node: str) -> bool:
    return node == top or node.startswith(top + "/")

  return {node: set(filter(inside, others)) for node, others in graph.items() if inside(node)}


def body(text: str, name: str) -> str:
  """What stands between the braces of class or struct `name`, without what nested braces hold; empty: there is none."""
  begin = re.search(rf"^(?:class|struct) (?:[A-Z_]+(?:\(.*?\))? )?{name}\b[^;{{]*{{", text, re.MULTILINE)
  if begin is None:
    return ""
  depth, kept = 1, []
  for char in re.sub(r"//.*", "", text[begin.end():]):
    depth += (char == "{") - (char == "}")
    if depth == 0:
      break
    if depth == 1 and char != "}":
      kept.append(char)
    elif char == "}":
      kept.append(";")  # an inline function or a nested class ends
  return "".join(kept)


def fields(text: str, name: str) -> int:
  """Members of class `name` that each object has."""
  member = re.compile(r"\b\w+_(\s*=.*|\s*ABSL_GUARDED_BY\(.*)?$", re.DOTALL)
  return sum(member.search(statement.strip()) is not None and "static" not in statement for statement in body(text, name).split(";"))


def public_functions(text: str, name: str) -> int:
  """Of class `name`, without constructors and what is deleted."""
  public = ""
  for part in re.split(r"^ (?=public:|private:|protected:)", body(text, name), flags=re.MULTILINE):
    if part.startswith("public:"):
      public += part[len("public:"):]
  other = re.compile(rf"\b{name}\(|= delete|using |operator")
  return sum("(" in statement and other.search(statement) is None for statement in public.split(";"))


def constants(text: str) -> int:
  return len(re.findall(r"\bconstexpr\b[^;(]*\bk[A-Z]\w*(?:\[\])?\s*(?:=|\{)", text))


def report(sources: list[rules.Source]) -> list[tuple[str, str]]:
  """(what, figure), in the order in which they are printed."""
  text = {source.path: source.text for source in sources}

  def count(wanted) -> str:
    return f"{sum(len(source.lines) for source in sources if wanted(source)):,}"

  graph = arrows(sources)
  tied = [sorted(group) for group in components(graph) if len(group) > 1]
  loose = [path for path in text if folder(path) == "daemon" and path.endswith((".cc", ".h")) and not path.endswith("_test.cc")]
  rows = [
      ("lines of C++ that ship", count(lambda source: source.is_cpp() and not source.is_test())),
      ("lines of C++ tests", count(lambda source: source.is_cpp() and source.is_test())),
      ("lines of Python", count(lambda source: source.path.endswith(".py"))),
      ("lines of BUILD files", count(lambda source: source.path.endswith("BUILD.bazel"))),
      ("constants of the data plane", str(sum(constants(source.text) for source in sources if source.path.startswith(DATA_PLANE)
                                              and source.is_cpp() and not source.is_test()))),
      ("of these, tuning", str(constants(text.get(rules.TUNING, "")))),
      ("C++ files in the root of daemon/", str(len(loose))),
      *((f"layers of {top}/", str(max(layers(below(graph, top)).values(), default=0))) for top in ("client", "daemon", "netplugin")),
      ("arrows between folders", str(sum(map(len, graph.values())))),
      ("arrows inside cycles", str(sum(len(graph[node] & set(group)) for group in tied for node in group))),
      ("folders that include each other", "; ".join(" ".join(group) for group in tied) or "none"),
  ]
  for path, name in LARGE:
    if path in text:
      rows.append((f"{name}: fields", str(fields(text[path], name))))
      rows.append((f"{name}: public functions", str(public_functions(text[path], name))))
  return rows


def main() -> None:
  for what, figure in report(tree.read_sources(tree.workspace_root())):
    print(f"{what:40} {figure}")


if __name__ == "__main__":
  sys.exit(main())
