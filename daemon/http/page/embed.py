"""Makes page_file.cc of the page's files: embed.py FILE... > page_file.cc. index.html is served at /, all others at /page/NAME."""

import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml"}
# A C++ string literal may have at most 65,536 characters.
LITERAL_MAX = 16_000


def literal(text):
  """`text` as C++ string literals, one after the other."""
  parts = [text[at:at + LITERAL_MAX] for at in range(0, len(text), LITERAL_MAX)]
  return "\n".join(f'R"page({part})page"' for part in parts)


def shortened(name, text):
  """`text` without the indentation and the comment lines of its authors."""
  if not name.endswith((".js", ".css")):
    return text
  lines = (line.strip() for line in text.split("\n"))
  return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def source(files):
  """page_file.cc of (name, text) pairs."""
  rows = []
  for name, text in files:
    path = "/" if name == "index.html" else f"/page/{name}"
    rows.append(f'    {{"{path}", "{TYPES[os.path.splitext(name)[1]]}",\n{literal(text)}}},\n')
  return ('#include "daemon/http/page/page_file.h"\n\nnamespace r2cc::daemon {\nnamespace {\n\n'
          f'constexpr PageFile kFiles[] = {{\n{"".join(rows)}}};\n\n}}  // namespace\n\n'
          "const PageFile* FindPageFile(std::string_view path) {\n"
          "  for (const PageFile& file : kFiles)\n    if (file.path == path) return &file;\n  return nullptr;\n}\n\n"
          "}  // namespace r2cc::daemon\n")


def main():
  files = []
  for path in sorted(sys.argv[1:]):
    with open(path, encoding="utf-8") as file:
      name = os.path.basename(path)
      files.append((name, shortened(name, file.read())))
  sys.stdout.write(source(files))


if __name__ == "__main__":
  main()
