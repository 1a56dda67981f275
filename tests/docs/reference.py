"""Writes docs/reference/configuration.md and rpc.md from the .proto files: ./bazelw run //tests/docs:reference

Each declaration of a .proto file is on a line of its own; the comment before it is its text.
"""

import dataclasses
import pathlib
import re
import sys

from tests.tidy import tree

FOLDER = "docs/reference"
COMMAND = "./bazelw run //tests/docs:reference"

_HEADS = {
    "configuration.md": ("proto/config.proto", """\
# Configuration reference

These are the fields of `r2cc.v1.DaemonConfig`, r2ccd's configuration, from `proto/config.proto`.
[Configuring](../operate/configure.md) explains how to use them. This page is generated: `{command}`.
"""),
    "rpc.md": ("proto/r2cc.proto", """\
# RPC reference

These are the services and messages of `proto/r2cc.proto`, and the messages of the files that it imports, as far as its services use
them. `Control` is on the control socket and, with a certificate, on the daemons' port. `Peer` is between daemons. This page is
generated: `{command}`.

A dash in a table means that the row above describes both, or that the name is one of these:

| name | meaning |
|---|---|
| `node`, `nic`, `rail` | the name of a node; the name of a NIC without its node; a rail as the job names it |
| `peer_node`, `peer_nic`, `peer` | the other end of a link or of a pair |
| `..._ns` | nanoseconds: a time of CLOCK_REALTIME, or a length of time |
| `uid`, `gid`, `groups`, `pid` | of a process, from the kernel |
| `state`, `word`, `epoch` | the state of a NIC; the health of a node; a version |
| `weight_permille`, `share_permille` | 1,000 is all of a full rail |
| `jobs`, `nodes`, `nics`, `processes` and other plurals | the list, or the count, of the things that the message is about |
| `..._more` | how many entries were left out |
| `..._bytes` | of all processes or links that the message is about |
| `why`, `text`, `message` | one line for a person |
"""),
}
# What config.proto also has: the files that the daemon writes.
_CONFIGURATION_ENDS = "// ---- what a daemon keeps over restarts"


@dataclasses.dataclass
class Declaration:
  """A message, enum or service: its comment, and (name, type, text) of its members."""
  kind: str
  name: str
  text: str
  members: list[tuple[str, str, str]]


_OPEN = re.compile(r"(message|enum|service|oneof) (\w+) \{(\}?)")
_IMPORT = re.compile(r'import "(proto/\w+\.proto)";')
_FIELD = re.compile(r"(repeated |optional )?([\w.]+|map<[\w, .]+>) (\w+) = \d+(?: \[[^\]]*\])?;")
_VALUE = re.compile(r"(\w+) = \d+;")
_RPC = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")


def read(text: str) -> list[Declaration]:
  """The declarations of a .proto file in their order; one inside another is behind it."""
  found: list[Declaration] = []
  open_: list[Declaration] = []
  comment: list[str] = []
  for line in text.splitlines():
    line, _, behind = (part.strip() for part in line.strip().partition("  // "))
    if line.startswith("//"):
      if not line.startswith("// ----"):
        comment.append(line[2:].strip())
      continue
    words = " ".join([*comment, behind.strip()]).strip()
    if opened := _OPEN.fullmatch(line):
      kind, name, empty = opened.groups()
      if kind == "oneof":
        open_.append(open_[-1])
      else:
        full = f"{open_[-1].name}.{name}" if open_ else name
        found.append(Declaration(kind, full, words, []))
        if not empty:
          open_.append(found[-1])
    elif line == "}":
      open_.pop()
    elif rpc := _RPC.fullmatch(line):
      name, many, request, stream, reply = rpc.groups()
      open_[-1].members.append((name, f"{many or ''}{request} to {stream or ''}{reply}", words))
    elif field := _FIELD.fullmatch(line):
      open_[-1].members.append((field.group(3), (field.group(1) or "") + field.group(2), words))
    elif open_ and open_[-1].kind == "enum" and (value := _VALUE.fullmatch(line)):
      open_[-1].members.append((value.group(1), "", words))
    elif open_ and line and not line.startswith("reserved"):
      raise ValueError(f"not understood: {line}")
    comment = []
  return found


def _cell(text: str) -> str:
  return text.replace("|", "\\|") or "-"


def _types(declaration: Declaration) -> set[str]:
  """The names in the types of its members. One inside the message is named without the message's own name."""
  names = {name for _, kind, _ in declaration.members for name in re.findall(r"\w[\w.]*", kind)}
  return names | {f"{declaration.name}.{name}" for name in names}


def read_with_imports(path: str, read_text) -> list[Declaration]:
  """The declarations of a file, and those of its imports, at any depth, that its services' messages use."""
  text = read_text(path)
  own = read(text)
  imported: list[Declaration] = []
  seen, open_ = {path}, _IMPORT.findall(text)
  while open_:
    if (file := open_.pop(0)) in seen:
      continue
    seen.add(file)
    text = read_text(file)
    imported += read(text)
    open_ += _IMPORT.findall(text)
  used: set[str] = set()
  new = set().union(*(_types(one) for one in own))
  while new - used:
    used |= new
    new = set().union(*(_types(one) for one in imported if one.name in used))
  return own + [one for one in imported if one.name in used]


def _linked(kind: str, inside: str, names: set[str]) -> str:
  """A type, with links to the sections of this page."""
  def link(match: re.Match[str]) -> str:
    for name in (f"{inside}.{match.group(0)}", match.group(0)):
      if name in names:
        return f"[{match.group(0)}](#{name.lower().replace('.', '')})"
    return match.group(0)
  return re.sub(r"\w[\w.]*", link, kind)


def _section(declaration: Declaration, names: set[str]) -> str:
  heads = {"message": "| field | type | meaning |\n|---|---|---|\n", "enum": "| value | meaning |\n|---|---|\n",
           "service": "| RPC | request and reply | meaning |\n|---|---|---|\n"}
  rows = "".join(f"| `{name}` | " + (f"{_cell(_linked(kind, declaration.name, names))} | " if declaration.kind != "enum" else "") +
                 f"{_cell(text)} |\n" for name, kind, text in declaration.members)
  text = f"| what it is |\n|---|\n| {_cell(declaration.text)} |\n\n" if declaration.text else ""
  return f"\n## {declaration.name}\n\n{text}" + (f"{heads[declaration.kind]}{rows}" if rows else "It has no fields.\n")


def pages(read_text) -> dict[str, str]:
  """Name -> text of the pages. `read_text`: of a path from the root."""
  made = {}
  for name, (path, head) in _HEADS.items():
    if name == "configuration.md":
      text = read_text(path)
      declarations = read(text[:text.index(_CONFIGURATION_ENDS)] if _CONFIGURATION_ENDS in text else text)
    else:
      declarations = read_with_imports(path, read_text)
    # What a reader looks for first comes first.
    order = {"service": 0, "message": 1, "enum": 2}
    declarations.sort(key=lambda one: (order[one.kind], one.name != "DaemonConfig"))
    names = {one.name for one in declarations}
    made[name] = head.format(command=COMMAND) + "".join(_section(one, names) for one in declarations)
  return made


def main() -> int:
  root = pathlib.Path(tree.workspace_root())
  for name, text in pages(lambda path: (root / path).read_text(encoding="utf-8")).items():
    (root / FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{FOLDER}/{name}")
  return 0


if __name__ == "__main__":
  sys.exit(main())
