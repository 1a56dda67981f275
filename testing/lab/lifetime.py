"""Turns signals into exceptions that unwind the stack, so that context managers clean up however a program is ended."""

import contextlib
import signal
from types import FrameType
from typing import Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndedBySignal(BaseException):
  """Not an Exception: only main() may swallow it."""

  def __init__(self, number: int):
    super().__init__(signal.Signals(number).name)
    self.exit_code = 128 + number


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
  """The first signal raises EndedBySignal in the main thread; more of them do not disturb the clean-up."""

  def unwind(number: int, frame: FrameType | None) -> None:
    del frame
    for other in _ENDING:
      signal.signal(other, signal.SIG_IGN)
    raise EndedBySignal(number)

  before = {number: signal.signal(number, unwind) for number in _ENDING}
  try:
    yield
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)
