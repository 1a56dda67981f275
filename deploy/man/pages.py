"""Writes a man page for scdoc(1): prose from a template, everything that a program also says of itself from that program.

    pages.py TEMPLATE NAME=FILE...

In the template a line @OPTIONS NAME@, @COMMANDS NAME@, @FIELDS NAME@ or @VARIABLES NAME TABLE@ is replaced by what FILE has: the output of
--help_json, a .proto file, or the plugin's variables and the table of them in docs/reference/environment.md.
"""

import json
import re
import sys

from deploy.config import commented

_SPECIAL = re.compile(r"([\\_*#`<>\[\]|~])")


class PageError(Exception):
  """One line says what does not fit."""


def plain(text: str) -> str:
  """`text` as it stands, whatever scdoc would make of its signs."""
  return _SPECIAL.sub(r"\\\1", re.sub(r"\s+", " ", text))


def bold(text: str) -> str:
  return f"*{plain(text)}*"


def markdown(text: str) -> str:
  """The text of a Markdown cell: what is code there is bold here, and a link is its text."""
  text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
  return "".join(bold(part) if number % 2 else plain(part) for number, part in enumerate(text.split("`")) if part)


def sentence(text: str) -> str:
  text = text.strip()
  return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def option_lines(option: dict, indent: str) -> list[str]:
  """One flag or positional argument: its names, what stands behind it, its text."""
  names = f"_{plain(option['names'][0])}_" if option["positional"] else ", ".join(bold(name) for name in option["names"])
  value = f" _{plain('|'.join(option['choices']) or option['value'])}_" if option["value"] else ""
  default = f" (default: {plain(option['default'])})" if option["default"] else ""
  return [f"{indent}{names}{value}", f"{indent}\t{plain(option['text'])}{default}", ""]


def synopsis(command: dict, path: str) -> str:
  words = [bold(path)]
  if any(not option["positional"] and "--help" not in option["names"] for option in command["options"]):
    words.append("[options]")
  for option in command["options"]:
    if option["positional"]:
      words.append(f"_{plain(option['names'][0])}_" if option["required"] else f"[_{plain(option['names'][0])}_]")
  return " ".join(words)


def options(tree: dict) -> list[str]:
  """All of a program's own."""
  return [line for option in tree["options"] for line in option_lines(option, "")]


def commands(tree: dict, path: str = "") -> list[str]:
  """Every command that can be given, the groups' own in between."""
  path = f"{path} {tree['name']}".strip()
  lines = []
  for command in tree["commands"]:
    if command["commands"]:
      lines += commands(command, path)
      continue
    lines += [synopsis(command, f"{path} {command['name']}"), f"\t{plain(sentence(command['text']))}", ""]
    for option in command["options"]:
      if "--help" not in option["names"]:
        lines += option_lines(option, "\t")
  return lines


def fields(messages: dict[str, commented.Message], name: str = commented.ROOT, indent: str = "") -> list[str]:
  """Every field of a message, with an example of its value, and those of the messages in it."""
  lines = []
  for field in messages[name].fields:
    of = messages.get(field.type)
    example = " { ... }" if of else f": {commented.EXAMPLES[f'{name}.{field.name}']}"
    text = " ".join(field.comment) or (" ".join(of.comment) if of else "")
    # Without a comment the name says it.
    text = " ".join(part for part in (text, "May be repeated." if field.repeated else "") if part) or "See the example."
    lines += [f"{indent}{bold(field.name)}{plain(example)}", f"{indent}\t{markdown(text)}", ""]
    if of:
      lines += fields(messages, field.type, indent + "\t")
  return lines


def table_variables(table: str) -> dict[str, tuple[str, str]]:
  """Name -> default and what it does, of the table."""
  rows = re.findall(r"^\| `(R2CC_\w+)` \| (.*?) \| (.*) \|$", table, re.MULTILINE)
  return {name: (default, does) for name, default, does in rows}


def variables(listed: str, table: str) -> list[str]:
  """What the plugin takes, by its own list, with the text of the table."""
  described = table_variables(table)
  known = dict(line.split("\t") for line in listed.splitlines())
  if described.keys() != known.keys():
    raise PageError(f"the table and the plugin do not list the same variables: {', '.join(sorted(described.keys() ^ known.keys()))}")
  lines = []
  for name, allowed in known.items():
    default, does = described[name]
    lines += [bold(name), f"\t{markdown(sentence(does))} May be: {plain(allowed)}. Default: {markdown(default)}.", ""]
  return lines


def page(template: str, files: dict[str, str]) -> str:
  """The whole page in scdoc's language."""
  makers = {
      "OPTIONS": lambda name: options(json.loads(files[name])),
      "COMMANDS": lambda name: commands(json.loads(files[name])),
      "FIELDS": lambda name: fields(commented.read(files[name])),
      "VARIABLES": lambda *names: variables(*(files[name] for name in names)),
  }
  lines = []
  for line in template.splitlines():
    asked = re.fullmatch(r"@([A-Z]+) (.+)@", line)
    lines += makers[asked.group(1)](*asked.group(2).split()) if asked else [line]
  return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def main() -> int:
  files = {}
  for argument in sys.argv[2:]:
    name, _, path = argument.partition("=")
    with open(path, encoding="utf-8") as file:
      files[name] = file.read()
  try:
    with open(sys.argv[1], encoding="utf-8") as file:
      sys.stdout.write(page(file.read(), files))
  except PageError as error:
    print(f"pages.py: {error}", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
