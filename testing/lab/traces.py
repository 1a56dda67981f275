"""Reads r2cc-perf's trace files: what completed, when, and how long the flow waited for it. Parsing is pure; TraceFollower reads files that
grow.

A file is CSV with the header kind,time_ns,rank,flow,bytes,wait_ns. Kinds: `send` and `recv`, one row a completion, where wait_ns is how
long that flow had a request outstanding and none completed; `open`, at exit, a wait that no completion ended; `iteration`, one row a
collective, where wait_ns is its duration. Times are CLOCK_MONOTONIC.
"""

import dataclasses
import pathlib

from testing.lab.lab import LabError

HEADER = "kind,time_ns,rank,flow,bytes,wait_ns"


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of a trace."""
  kind: str
  time_ns: int
  rank: int
  flow: str
  size_bytes: int
  wait_ns: int

  @property
  def begin_ns(self) -> int:
    return self.time_ns - self.wait_ns


def parse_rows(lines: list[str], where: str) -> list[Row]:
  """Whole lines without the header; `where` names them in an error."""
  rows = []
  for line in lines:
    fields = line.split(",")
    try:
      kind, time_ns, rank, flow, size_bytes, wait_ns = fields
      rows.append(Row(kind, int(time_ns), int(rank), flow, int(size_bytes), int(wait_ns)))
    except ValueError as error:
      raise LabError(f"{where}: '{line}' is not a row of a trace ({HEADER})") from error
  return rows


def split_whole_lines(text: str) -> tuple[list[str], str]:
  """Splits a file that is being written, which may end in the middle of a line: the whole lines, and the torn rest."""
  *lines, rest = text.split("\n")
  return [line for line in lines if line and line != HEADER], rest


def parse_trace(text: str, where: str = "trace") -> list[Row]:
  """A whole file; a torn last line is left out."""
  return parse_rows(split_whole_lines(text)[0], where)


class TraceFollower:
  """Reads what ranks have written since the last poll."""

  def __init__(self, prefix: pathlib.Path, ranks: int):
    self._paths = [prefix.parent / f"{prefix.name}.{rank}.csv" for rank in range(ranks)]
    self._offsets = [0] * ranks
    self._rests = [""] * ranks
    self.rows: list[Row] = []

  def poll(self) -> list[Row]:
    """The new rows of all ranks, which are also appended to `rows`."""
    fresh: list[Row] = []
    for index, path in enumerate(self._paths):
      try:
        with open(path, encoding="ascii", errors="replace") as file:
          file.seek(self._offsets[index])
          text = file.read()
          self._offsets[index] = file.tell()
      except FileNotFoundError:
        continue
      lines, self._rests[index] = split_whole_lines(self._rests[index] + text)
      fresh += parse_rows(lines, str(path))
    self.rows += fresh
    return fresh
