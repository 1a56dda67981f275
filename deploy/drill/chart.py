"""A bar chart in a terminal. Pure: values in, styled text out."""

import dataclasses
from typing import Sequence

from rich.text import Text

ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclasses.dataclass(frozen=True)
class Chart:
  """Bars over time."""
  values: Sequence[float]
  marks: Sequence[tuple[int, str]]  # (column, letter)
  seconds: float
  line: float | None  # what would be full; None: the highest value
  unit: str


def column_cells(value: float, top: float) -> list[str]:
  """One bar from its foot upwards."""
  eighths = max(0, min(ROWS * 8, round(value / top * ROWS * 8))) if top > 0 else 0
  return [_EIGHTHS[max(0, min(8, eighths - 8 * row))] for row in range(ROWS)]


def bar_style(value: float, full: float) -> str:
  if value >= 0.85 * full:
    return "green"
  return "yellow" if value >= 0.3 * full else "red"


def mark_rows(marks: Sequence[tuple[int, str]], columns: int) -> list[str]:
  """The letters below their columns; those that share one go to further rows."""
  rows: list[list[str]] = []
  for column, letter in marks:
    row = next((row for row in rows if row[column] == " "), None)
    if row is None:
      row = [" "] * columns
      rows.append(row)
    row[column] = letter
  return ["".join(row) for row in rows]


def draw(chart: Chart) -> Text:
  columns = len(chart.values)
  highest = max(chart.values, default=0.0)
  full = chart.line or highest
  top = max(full, highest)
  bars = [column_cells(value, top) for value in chart.values]
  text = Text()
  for row in reversed(range(ROWS)):
    scale = f"{top * (row + 1) / ROWS:7.2f} " if row % 2 == 1 else " " * 8
    text.append(f"{scale}│", style="dim")
    for bar, value in zip(bars, chart.values):
      text.append(bar[row], style=bar_style(value, full))
    text.append("\n")
  text.append(f"{chart.unit:>7} └" + "─" * columns + "\n", style="dim")
  for letters in mark_rows(chart.marks, columns):
    text.append(" " * 9 + letters.rstrip() + "\n", style="bold cyan")
  end = f"{chart.seconds:.0f} s"
  text.append(" " * 9 + "0 s" + " " * max(1, columns - 3 - len(end)) + end, style="dim")
  return text
