"""Programs on this machine and on the one behind ssh. What was started here ends with this process, there with the ssh connection."""

import pathlib
import shlex
import subprocess
from typing import Mapping, Protocol, Sequence

from testing.lab.lab import LabError
from testing.lab.processes import ManagedProcess, Processes

_COMMAND_TIMEOUT_S = 30
# The program, until it ends or standard input does, as it does when ssh is gone. A shell gives what it starts with & another standard
# input.
_UNTIL_INPUT_ENDS = ("exec 3<&0; ({command}) 3<&- </dev/null & program=$!; (cat <&3; kill $program) >/dev/null 2>&1 & watch=$!; "
                     "wait $program; code=$?; kill $watch 2>/dev/null; exit $code")


class Machine(Protocol):
  """Where commands run."""
  name: str

  def argv(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What to run here so that `command` runs there until that ends."""
    ...


class Here:
  """This machine."""

  def __init__(self, name: str):
    self.name = name

  def argv(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in environment.items()), *command]


class There:
  """The machine that `ssh` leads to; `ssh` is the command with its options and the host."""

  def __init__(self, name: str, ssh: Sequence[str]):
    self.name = name
    self._ssh = list(ssh)

  def argv(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    return [*self._ssh, shlex.join(["env", *(f"{name}={value}" for name, value in environment.items()), *command])]

  def lasting_argv(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The same, and it ends with the connection."""
    inner = shlex.join(["exec", "env", *(f"{name}={value}" for name, value in environment.items()), *command])
    return [*self._ssh, _UNTIL_INPUT_ENDS.format(command=inner)]


def run(machine: Machine, command: Sequence[str], check: bool = True) -> str:
  """Its standard output, once it has ended."""
  what = f"{machine.name}: {shlex.join(command)}"
  try:
    done = subprocess.run(machine.argv(command, {}), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S,
                          check=False)
  except FileNotFoundError as error:
    raise LabError(f"{what}: there is no {error.filename}; install it") from error
  except subprocess.TimeoutExpired as error:
    raise LabError(f"{what}: no answer within {_COMMAND_TIMEOUT_S} s") from error
  if check and done.returncode != 0:
    output = " | ".join(line.strip() for line in done.stderr.splitlines()[-3:] if line.strip())
    raise LabError(f"{what}: {output or f'exit code {done.returncode}'}")
  return done.stdout


class RemoteProcesses:
  """Processes that keep the standard input of each ssh open as long as it is to last: a context manager."""

  def __init__(self, processes: Processes):
    self._processes = processes
    self._inputs: list[subprocess.Popen] = []

  def __enter__(self) -> "RemoteProcesses":
    return self

  def __exit__(self, *unused: object) -> None:
    self.end()

  def end(self) -> None:
    for process in self._inputs:
      if process.stdin is not None:
        process.stdin.close()
    for process in self._inputs:
      try:
        process.wait(5)
      except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    self._inputs = []

  def start(self, machine: There, name: str, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen:
    logs: pathlib.Path = self._processes.logs
    with open(logs / f"{name}.out", "ab") as out, open(logs / f"{name}.err", "ab") as err:
      process = subprocess.Popen(machine.lasting_argv(command, environment), stdin=subprocess.PIPE, stdout=out, stderr=err,
                                 start_new_session=True)
    self._inputs.append(process)
    return process


__all__ = ["Here", "Machine", "ManagedProcess", "RemoteProcesses", "There", "run"]
