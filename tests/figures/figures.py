"""Writes docs/figures: ./bazelw run //:figures. See --help."""

import argparse
import os
import pathlib
import subprocess
import sys

from tests.figures import charts, drawings, stalls, tables
from tests.figures.claims import claims
from tests.figures.page import KEPT_CHARTS, page

DATA_PROGRAM = "tests/figures/figures_data"
FOLDER = "docs/figures"


def computed() -> dict[str, tables.Table]:
  """The tables that the data program prints, with what is published beside them."""
  measured = tables.read_csv("stalls", stalls.FILE.read_text(encoding="utf-8"))
  hit_ms = stalls.longest_ms(stalls.read(measured.csv()))
  done = subprocess.run([DATA_PROGRAM, f"--hit-ms={hit_ms:g}"], stdout=subprocess.PIPE, text=True, check=False)
  if done.returncode != 0:
    raise SystemExit(f"figures: {DATA_PROGRAM} ended with {done.returncode}")
  joined = {name: tables.with_published(table) for name, table in tables.parse(done.stdout).items()}
  joined["stalls"] = measured
  joined["claims"] = claims(joined)
  return joined


def drawn(joined: dict[str, tables.Table]) -> dict[str, str]:
  """What is made of the tables: charts and the page. Name -> text."""
  files = {f"{name}.svg": charts.svg(draw(joined)) for name, draw in drawings.DRAWINGS.items()}
  files["README.md"] = page(joined)
  return files


def kept(files: dict[str, str]) -> dict[str, str]:
  """Those of drawn() that stand in FOLDER."""
  return {name: files[name] for name in ["README.md", *(f"{chart}.svg" for chart in KEPT_CHARTS)]}


def write(files: dict[str, str], folder: pathlib.Path) -> list[str]:
  """Writes what differs and removes charts and tables that are made no more; says what it did, a line a file."""
  result = []
  folder.mkdir(parents=True, exist_ok=True)
  for path in sorted(folder.iterdir()):
    if path.suffix in (".csv", ".svg") and path.name not in files:
      path.unlink()
      result.append(f"removed   {path.name}")
  for name, text in sorted(files.items()):
    path = folder / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
      path.write_text(text, encoding="utf-8")
      result.append(f"written   {name}")
  return result


def main(arguments: list[str]) -> int:
  """The program."""
  description = "The papers' tables and figures, computed with plan/'s library, and ours beside them."
  parser = argparse.ArgumentParser(prog="figures", description=description)
  parser.add_argument("--out", type=pathlib.Path, help=f"where to write all; default: what is kept in the workspace's {FOLDER}")
  options = parser.parse_args(arguments)
  workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
  if options.out is None and workspace is None:
    parser.error("outside of `bazel run` name a folder with --out")
  folder = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), options.out) if options.out else pathlib.Path(workspace, FOLDER)
  joined = computed()
  files = drawn(joined)
  if options.out:
    files |= {f"{name}.csv": table.csv() for name, table in joined.items()}
  else:
    files = kept(files)
  result = write(files, folder)
  print("\n".join(result) if result else f"{folder} is up to date")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
