"""What a run has found: JSON objects, one a line, printed and appended to a file as soon as they are known."""

import json
import pathlib
import sys
import time
from typing import Any


class Results:
  """Also keeps the time since the start, which every line of progress begins with."""

  def __init__(self, path: pathlib.Path):
    self._path, self._begin_s = path, time.monotonic()
    self._count = 0

  def elapsed_s(self) -> float:
    return time.monotonic() - self._begin_s

  def print_line(self, line: str) -> None:
    print(f"[{self.elapsed_s():7.1f} s] {line}", file=sys.stderr, flush=True)

  def add(self, case: str, variant: str, **figures: Any) -> None:
    """A figure that a case does not have is null or left out."""
    self._count += 1
    line = json.dumps({"case": case, "variant": variant, **figures, "at_s": round(self.elapsed_s(), 1)})
    print(line, flush=True)
    with open(self._path, "a", encoding="utf-8") as file:
      file.write(line + "\n")

  @property
  def count(self) -> int:
    return self._count
