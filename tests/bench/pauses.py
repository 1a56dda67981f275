"""When the whole machine stood still: a guest whose host gives it nothing for a while. What happens on it cannot be told from that by any
clock, so figures of milliseconds leave such pauses out, and say so. Pauses is the only part that is not pure."""

import contextlib
import pathlib
import subprocess
import tempfile
from types import TracebackType
from typing import Callable, Sequence

from testing.lab.binaries import built_file
from testing.lab.lab import LabError
from testing.lab.processes import wait_until
from testing.lab.stalls import Window

START_S = 5.0


def parse(text: str) -> tuple[int, dict[int, list[Window]]]:
  """What pause_witness prints: how many processors it watches, and the pauses of each. A torn last line is left out."""
  lines = text[:text.rfind("\n") + 1].splitlines()
  if not lines or not lines[0].endswith(" processors"):
    raise LabError(f"'{lines[0] if lines else ''}' is not what pause_witness says first")
  found: dict[int, list[Window]] = {}
  for line in lines[1:]:
    processor, begin_ns, end_ns = (int(field) for field in line.split())
    found.setdefault(processor, []).append(Window(begin_ns, end_ns))
  return int(lines[0].split()[0]), found


def everywhere(processors: int, paused: dict[int, list[Window]]) -> list[Window]:
  """When all processors paused at once: as long as one of them runs, work may go on."""
  edges = sorted([(window.begin_ns, 1) for windows in paused.values() for window in windows] +
                 [(window.end_ns, -1) for windows in paused.values() for window in windows])
  found, depth, begin_ns = [], 0, 0
  for time_ns, step in edges:
    if depth == processors and step < 0 and time_ns > begin_ns:
      found.append(Window(begin_ns, time_ns))
    depth += step
    if depth == processors and step > 0:
      begin_ns = time_ns
  return found


class Pauses:
  """Watches while it is entered. Without the privilege it says so, and knows of no pause."""

  def __init__(self, print_line: Callable[[str], None]):
    self._print_line = print_line

  def __enter__(self) -> "Pauses":
    with contextlib.ExitStack() as stack:
      folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="r2cc-pauses-")))
      self._out, words = folder / "out", folder / "words"
      with open(self._out, "wb") as out, open(words, "wb") as err:
        process = subprocess.Popen([built_file("tests/bench/pause_witness")], stdin=subprocess.PIPE, stdout=out, stderr=err)
      stack.callback(process.wait)
      stack.callback(process.kill)
      if not wait_until(lambda: self._text() or process.poll() is not None, START_S, 0.01) or not self._text():
        self._print_line(f"the machine's own pauses are not known and stay in the figures: {words.read_text(errors='replace').strip()}")
      self._stack = stack.pop_all()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    self._stack.close()

  def _text(self) -> str:
    return self._out.read_text(encoding="ascii")

  def windows(self) -> list[Window]:
    """Of the whole machine, from the start until now."""
    text = self._text()
    return everywhere(*parse(text)) if text else []
