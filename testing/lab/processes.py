"""Runs real processes that end with their owner: each in its own session, its output in a file, ended by pid and never by name."""

import ctypes
import os
import pathlib
import signal
import subprocess
import time
from types import TracebackType
from typing import Callable, Mapping, Sequence

from testing.lab.lab import LabError

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
# Variables of a shell that would make runs differ.
_FOREIGN_PREFIXES = ("R2CC_", "NCCL_")
_WANTED = ("R2CC_LOG",)


def _die_with_parent() -> None:
  """Runs between fork and exec: a drill that is killed takes its processes with it."""
  _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
  kept = {name: value for name, value in os.environ.items() if name in _WANTED or not name.startswith(_FOREIGN_PREFIXES)}
  return kept | dict(extra)


class ManagedProcess:
  """One running program. Standard output and error go to `NAME.out` and `NAME.err` of the log folder."""

  def __init__(self, name: str, argv: Sequence[str], environment: Mapping[str, str], logs: pathlib.Path, descriptors: Sequence[int] = ()):
    self.name = name
    self.out_path, self.err_path = logs / f"{name}.out", logs / f"{name}.err"
    with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
      try:
        self._popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                       env=clean_environment(environment), preexec_fn=_die_with_parent, pass_fds=descriptors)
      except OSError as error:
        raise LabError(f"{name}: '{argv[0]}' cannot be started: {error.strerror}") from error

  @property
  def pid(self) -> int:
    return self._popen.pid

  @property
  def returncode(self) -> int | None:
    return self._popen.poll()

  def is_alive(self) -> bool:
    return self._popen.poll() is None

  def send(self, number: signal.Signals) -> None:
    """Signals this process alone; does nothing if it has ended."""
    if self.is_alive():
      self._popen.send_signal(number)

  def pause(self) -> None:
    self.send(signal.SIGSTOP)

  def resume(self) -> None:
    self.send(signal.SIGCONT)

  def wait(self, timeout_s: float) -> int | None:
    """The exit status; None: it still runs."""
    try:
      return self._popen.wait(timeout_s)
    except subprocess.TimeoutExpired:
      return None

  def kill(self) -> None:
    """Kills it at once, with all that it started."""
    if self.is_alive():
      os.killpg(self._popen.pid, signal.SIGKILL)
    self._popen.wait()

  def stop(self, grace_s: float = 3.0) -> int:
    """Sends SIGTERM, then SIGKILL to what did not end."""
    self.send(signal.SIGTERM)
    self.resume()
    if self.wait(grace_s) is None:
      self.kill()
    return self._popen.wait()

  def output(self) -> str:
    return self.out_path.read_text(encoding="utf-8", errors="replace")

  def errors(self) -> str:
    return self.err_path.read_text(encoding="utf-8", errors="replace")

  def last_lines(self, lines: int = 3) -> str:
    """The end of its standard error in one line, for a message."""
    return " | ".join(line.strip() for line in self.errors().splitlines()[-lines:] if line.strip()) or "it said nothing"


class Processes:
  """A context manager: no process that was started inside outlives it."""

  def __init__(self, logs: pathlib.Path):
    self.logs = logs
    self._started: list[ManagedProcess] = []

  def __enter__(self) -> "Processes":
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    self.end_all()

  def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None,
            descriptors: Sequence[int] = ()) -> ManagedProcess:
    """`descriptors` keep their numbers in the process."""
    process = ManagedProcess(name, argv, environment or {}, self.logs, descriptors)
    self._started.append(process)
    return process

  def end_all(self) -> None:
    """Signals all first and then waits, so that it takes one grace period and not one each."""
    for process in self._started:
      process.send(signal.SIGTERM)
      process.resume()
    deadline_s = time.monotonic() + 3
    for process in self._started:
      if process.wait(max(0.0, deadline_s - time.monotonic())) is None:
        process.kill()
    self._started = []


def wait_until(condition: Callable[[], bool], timeout_s: float, every_s: float = 0.02) -> bool:
  """Calls `condition` until it is true; False: it was not in time."""
  deadline_s = time.monotonic() + timeout_s
  while not condition():
    if time.monotonic() >= deadline_s:
      return False
    time.sleep(every_s)
  return True
