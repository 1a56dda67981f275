"""NVIDIA's MPS for the time of a run: kernels of nodes that share a GPU run side by side, where they would take turns of milliseconds."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Iterator

from testing.lab.processes import Processes, wait_until
from tests.gpu.tools import Missing

PROGRAM = "nvidia-cuda-mps-control"
START_S, QUIT_S = 10.0, 10.0


def _ask(program: str, command: str, environment: dict[str, str]) -> bool:
  try:
    done = subprocess.run([program], input=command + "\n", text=True, capture_output=True, timeout=QUIT_S, check=False, env=environment)
  except (OSError, subprocess.TimeoutExpired):
    return False
  return done.returncode == 0


@contextlib.contextmanager
def service(logs: pathlib.Path) -> Iterator[dict[str, str]]:
  """A service of this run's own, for processes with the environment that it gives; the GPUs' settings stay as they are."""
  program = shutil.which(PROGRAM)
  if program is None:
    raise Missing(f"--mps: '{PROGRAM}', which comes with NVIDIA's driver, is not in PATH; add its folder, or leave --mps out")
  logs.mkdir(parents=True, exist_ok=True)
  # In /tmp whatever TMPDIR says: the path of a Unix socket has room for 107 bytes.
  with tempfile.TemporaryDirectory(prefix="r2cc-mps-", dir="/tmp") as folder, Processes(logs) as processes:
    environment_of_mps = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": str(logs)}
    environment = dict(os.environ) | environment_of_mps
    control = processes.start("mps-control", [program, "-f"], environment_of_mps)
    serves = wait_until(lambda: not control.is_alive() or _ask(program, "get_server_list", environment), START_S, 0.1)
    if not serves or not control.is_alive():
      raise Missing(f"--mps: {program} does not serve here: {control.last_lines()}; leave --mps out")
    try:
      yield environment_of_mps
    finally:
      _ask(program, "quit -t 5", environment)
      control.wait(QUIT_S)
