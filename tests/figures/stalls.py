"""Keeps what GPU runs have measured of stalls.

    ./bazelw run //tests/figures:stalls -- r2cc-gpu/results.jsonl --machine "two H200s" --commit COMMIT

Reads the file that tests/gpu's kit/run writes and puts its stalls into tests/figures/measured_stalls.csv, in place of those of the same
case, variant and machine. //:figures takes our longest stall from there.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import statistics
import sys
from typing import Iterable

FILE = pathlib.Path("tests/figures/measured_stalls.csv")
COLUMNS = ["case", "variant", "faults", "median_ms", "worst_ms", "machine", "commit"]
_KEY = ("case", "variant", "machine")
# All rails of a node for seconds: that stall is the fault's length.
_NO_SINGLE_NIC = ("blackout",)


def read(text: str) -> list[dict[str, str]]:
  """The rows; ValueError if a cell is missing or a stall is no number."""
  reader = csv.DictReader(io.StringIO(text))
  rows = list(reader)
  if reader.fieldnames != COLUMNS or not rows or any(None in row.values() or None in row for row in rows):
    raise ValueError(f"{FILE}: its columns are not {', '.join(COLUMNS)}")
  for row in rows:
    if not 0 <= float(row["median_ms"]) <= float(row["worst_ms"]):
      raise ValueError(f"{FILE}: a median above the worst in {row}")
  return rows


def longest_ms(rows: Iterable[dict[str, str]]) -> float:
  """Of every case, whichever way the NIC was lost."""
  return max(float(row["worst_ms"]) for row in rows)


def measured(lines: Iterable[str], machine: str, commit: str) -> list[dict[str, str]]:
  """The rows of a results.jsonl."""
  rows = []
  for line in lines:
    result = json.loads(line)
    stalls = result.get("stalls_ms")
    if stalls and result["case"] not in _NO_SINGLE_NIC:
      rows.append({"case": result["case"], "variant": result["variant"], "faults": str(len(stalls)),
                   "median_ms": f"{statistics.median(stalls):g}", "worst_ms": f"{max(stalls):g}", "machine": machine, "commit": commit})
  return rows


def merged(old: list[dict[str, str]], new: list[dict[str, str]]) -> list[dict[str, str]]:
  """`new` in the places of what it replaces, the rest behind."""
  key = lambda row: tuple(row[name] for name in _KEY)
  newest = {key(row): row for row in new}
  kept = [newest.pop(key(row), row) for row in old]
  return kept + list(newest.values())


def written(rows: list[dict[str, str]]) -> str:
  """The file's text."""
  text = io.StringIO()
  writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)
  return text.getvalue()


def main(arguments: list[str]) -> int:
  """The program."""
  parser = argparse.ArgumentParser(prog="stalls", description="Keeps the stalls of a GPU run for //:figures.")
  parser.add_argument("results", type=pathlib.Path, help="results.jsonl, as kit/run writes it")
  parser.add_argument("--machine", required=True, help="what it ran on")
  parser.add_argument("--commit", required=True, help="which plugin")
  options = parser.parse_args(arguments)
  workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
  if workspace is None:
    parser.error("run it with ./bazelw run")
  results = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), options.results)
  file = pathlib.Path(workspace, FILE)
  new = measured(results.read_text(encoding="utf-8").splitlines(), options.machine, options.commit)
  if not new:
    print(f"stalls: {results} holds no stall", file=sys.stderr)
    return 1
  file.write_text(written(merged(read(file.read_text(encoding="utf-8")), new)), encoding="utf-8")
  print(f"{len(new)} rows written to {FILE}; now ./bazelw run //:figures")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
