"""What `python -m r2cc` was asked for."""

import json
import os
import pathlib
import shlex
import sys
from typing import Sequence

from r2cc import environment

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = HERE / "lib"
R2CCCTL = HERE / "bin" / "r2ccctl"
CONTROL_DIRECTORY = pathlib.Path("/run/r2cc-control")
USAGE = """\
usage: python -m r2cc COMMAND

  run [--seat] -- COMMAND ...   set the job's variables and become the command: python -m r2cc run -- torchrun --nproc-per-node 8 train.py
  env [--seat] [--json]         print the variables for a shell: eval "$(python -m r2cc env)"
  doctor [...]                  what is wrong with this machine for a job, each with its fix (r2ccctl doctor)
  ctl ...                       r2ccctl, for nodes that run r2ccd

--seat, on all nodes: while a node has lost rails, large all_reduce operations use NCCL's tree, in which that node moves half of the data.
The sums are as right, but not the same to the bit.

NCCL jobs that survive broken NICs, cables and ports. The job needs no root and no service on the node.
"""


def _become(words: Sequence[str], changed: dict[str, str]) -> int:
  """Only comes back where there is no such program."""
  sys.stdout.flush()
  try:
    os.execvpe(words[0], words, {**os.environ, **changed})
  except OSError as error:
    print(f"r2cc: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
  return 127


def _wrong(text: str) -> int:
  print(f"r2cc: {text}", file=sys.stderr)
  return 2


def main(arguments: Sequence[str]) -> int:
  """The exit status: 2 for a wrong command line."""
  command, words = (arguments[0] if arguments else ""), list(arguments[1:])
  if command in ("-h", "--help", "help"):
    print(USAGE, end="")
    return 0
  if command not in ("run", "env", "doctor", "ctl"):
    return _wrong(f"'{command}' is no command: run, env, doctor or ctl; python -m r2cc --help explains them")
  if command == "ctl":
    return _become([str(R2CCCTL), *words], {})
  seat = command in ("run", "env") and words[:1] == ["--seat"]
  words = words[1:] if seat else words
  try:
    changed = environment.variables(LIBRARIES, os.environ, seat)
  except environment.AnotherPlugin as error:
    return _wrong(str(error))
  if command == "doctor":
    daemon = [] if CONTROL_DIRECTORY.exists() else ["--no-daemon"]
    return _become([str(R2CCCTL), "doctor", "--job", *daemon, *words], changed)
  if command == "run":
    words = words[1:] if words[:1] == ["--"] else words
    return _become(words, changed) if words else _wrong("run what? python -m r2cc run -- COMMAND ...")
  if words not in ([], ["--json"]):
    return _wrong(f"env takes --seat, --json and nothing else, not '{' '.join(words)}'")
  if words:
    print(json.dumps(changed, indent=2))
  else:
    print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in changed.items()))
  return 0
