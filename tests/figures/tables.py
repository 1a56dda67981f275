"""The tables that the data program prints, with what is published beside them."""

import csv
import dataclasses
import io
from typing import Iterable

from tests.figures.published import PUBLISHED, Value


@dataclasses.dataclass
class Table:
  """One table: cells are texts, as they stand in its CSV."""
  name: str
  columns: list[str]
  rows: list[list[str]]

  def column(self, name: str) -> list[str]:
    """All cells of a column, from the first row on."""
    at = self.columns.index(name)
    return [row[at] for row in self.rows]

  def numbers(self, name: str) -> list[float]:
    """A column of numbers; an empty cell is not a number."""
    return [float(cell) if cell else float("nan") for cell in self.column(name)]

  def where(self, **cells: str) -> "Table":
    """The rows that have these cells."""
    wanted = [(self.columns.index(name), cell) for name, cell in cells.items()]
    return Table(self.name, self.columns, [row for row in self.rows if all(row[at] == cell for at, cell in wanted)])

  def csv(self) -> str:
    """The file's text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(self.columns)
    writer.writerows(self.rows)
    return text.getvalue()


def read_csv(name: str, text: str) -> Table:
  """A table from its file's text."""
  rows = list(csv.reader(io.StringIO(text)))
  if any(len(row) != len(rows[0]) for row in rows):
    raise ValueError(f"table {name}: its rows differ in length")
  return Table(name, rows[0], rows[1:])


def parse(text: str) -> dict[str, Table]:
  """From the program's output: "#NAME", CSV with a header line, an empty line; again and again."""
  tables = {}
  for part in text.split("\n\n"):
    if not part.strip():
      continue
    name, _, body = part.partition("\n")
    if not name.startswith("#"):
      raise ValueError(f"a table begins with '#NAME', not with {name!r}")
    tables[name[1:]] = read_csv(name[1:], body)
  return tables


def _decimals(text: str) -> int:
  return len(text.partition(".")[2])


def _difference(ours: str, published: Value) -> str:
  """Ours less theirs, with as many decimals as the coarser of the two."""
  decimals = min(_decimals(ours), _decimals(published.text))
  difference = float(ours) - published.number
  return f"{difference:+.{decimals}f}" if abs(difference) >= 0.5 * 10**-decimals else f"{0:.{decimals}f}"


def with_published(table: Table, published: dict[tuple[str, ...], Value] | None = None) -> Table:
  """`table` with two more columns behind each one that has a published value: that value, and ours less it.

  A row's key is its first cells, as many as the published keys name. A published value that finds no row or column is an error: it would
  be lost in silence.
  """
  values = PUBLISHED.get(table.name, {}) if published is None else published
  compared = [column for column in table.columns if any(key[-1] == column for key in values)]
  columns, unused = [], set(values)
  for column in table.columns:
    columns += [column] + ([f"{column}_published", f"{column}_difference"] if column in compared else [])
  rows = []
  for row in table.rows:
    cells = []
    for column, cell in zip(table.columns, row):
      cells.append(cell)
      if column not in compared:
        continue
      key = next((key for key in values if key[-1] == column and list(key[:-1]) == row[:len(key) - 1]), None)
      unused.discard(key)
      cells += [values[key].text, _difference(cell, values[key]) if cell else ""] if key else ["", ""]
    rows.append(cells)
  if unused:
    raise ValueError(f"table {table.name}: nothing to put beside the published {sorted(unused)}")
  return Table(table.name, columns, rows)


def sources(tables: Iterable[Table]) -> list[str]:
  """Where the published values of these tables stand, each once."""
  return sorted({value.source for table in tables for value in PUBLISHED.get(table.name, {}).values()})
