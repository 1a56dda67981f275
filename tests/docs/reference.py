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

These are the services and messages of `proto/r2cc.proto`. `Control` is on the control socket and, with a certificate, on the daemons' port.
`Peer` is between daemons. This page is generated: `{command}`.
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


_OPEN = re.compile(r"(message|enum|service|oneof) (\w+) \{")
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
      kind, name = opened.groups()
      if kind == "oneof":
        open_.append(open_[-1])
      else:
        full = f"{open_[-1].name}.{name}" if open_ else name
        open_.append(Declaration(kind, full, words, []))
        found.append(open_[-1])
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


def _section(declaration: Declaration) -> str:
  heads = {"message": "| field | type | meaning |\n|---|---|---|\n", "enum": "| value | meaning |\n|---|---|\n",
           "service": "| RPC | request and reply | meaning |\n|---|---|---|\n"}
  rows = "".join(f"| `{name}` | " + (f"{_cell(kind)} | " if declaration.kind != "enum" else "") + f"{_cell(text)} |\n"
                 for name, kind, text in declaration.members)
  text = f"| what it is |\n|---|\n| {_cell(declaration.text)} |\n\n" if declaration.text else ""
  return f"\n## {declaration.name}\n\n{text}{heads[declaration.kind]}{rows}"


def pages(read_text) -> dict[str, str]:
  """Name -> text of the pages. `read_text`: of a path from the root."""
  made = {}
  for name, (path, head) in _HEADS.items():
    text = read_text(path)
    if name == "configuration.md":
      text = text[:text.index(_CONFIGURATION_ENDS)] if _CONFIGURATION_ENDS in text else text
    declarations = read(text)
    # What a reader looks for first comes first.
    order = {"service": 0, "message": 1, "enum": 2}
    declarations.sort(key=lambda one: (order[one.kind], one.name != "DaemonConfig"))
    made[name] = head.format(command=COMMAND) + "".join(_section(one) for one in declarations if one.members)
  return made


def main() -> int:
  root = pathlib.Path(tree.workspace_root())
  for name, text in pages(lambda path: (root / path).read_text(encoding="utf-8")).items():
    (root / FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{FOLDER}/{name}")
  return 0


if __name__ == "__main__":
  sys.exit(main())
