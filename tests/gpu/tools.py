"""What a run needs of the machine, found or missed with one clear line."""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Iterable

PROGRAMS = ("ip", "tc", "bridge")
_PROBE = """
import json, torch
versions = {"torch": torch.__version__, "gpus": torch.cuda.device_count()}
if versions["gpus"]:
  versions["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
  versions["gpu"] = torch.cuda.get_device_name(0)
print(json.dumps(versions))
"""
_PROBE_S = 180


class Missing(Exception):
  """The machine lacks something; one line that says what to do."""


def wrapped_iproute2(folder: pathlib.Path, target: pathlib.Path) -> None:
  """Unpacked packages of iproute2 and its libraries become programs in `target` that find their libraries."""
  found = {name: path for name in PROGRAMS for path in
           (folder / "bin" / name, folder / "sbin" / name, folder / "usr/bin" / name, folder / "usr/sbin" / name) if path.is_file()}
  lacking = [name for name in ("ip", "tc") if name not in found]
  if lacking:
    raise Missing(f"--iproute2 {folder}: there is no {' and no '.join(lacking)} in its bin/, sbin/, usr/bin/ or usr/sbin/")
  libraries = sorted({str(pathlib.Path(path).parent) for path in glob.glob(f"{folder}/**/*.so*", recursive=True)})
  for name, path in found.items():
    wrapper = target / name
    wrapper.write_text(f"#!/bin/sh\nLD_LIBRARY_PATH={':'.join(libraries)} exec {path} \"$@\"\n", encoding="ascii")
    wrapper.chmod(0o755)


def check_iproute2() -> None:
  for name in ("ip", "tc"):
    if shutil.which(name) is None:
      raise Missing(f"'{name}' is not installed; install the package iproute2, or give --iproute2 DIR with the package and its libraries "
                    "unpacked in it")
    done = subprocess.run([name, "-V"], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
      raise Missing(f"'{name} -V' fails: {' '.join(done.stderr.split())[:200]}; give --iproute2 DIR with all libraries that it needs")


def probe_torch(python: str, library_path: str) -> dict[str, str | int]:
  """Versions and the number of GPUs, as the ranks will see them."""
  environment = dict(os.environ) | {"LD_LIBRARY_PATH": library_path}
  try:
    done = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_S, check=False, env=environment)
  except (OSError, subprocess.TimeoutExpired) as error:
    raise Missing(f"{python} cannot be asked for PyTorch: {error}; give --python PATH of one that has it") from error
  if done.returncode != 0:
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    raise Missing(f"{python} has no working PyTorch ({last}); give --python PATH of one that has it")
  return json.loads(done.stdout.strip().splitlines()[-1])


def processor_cores(allowed: Iterable[int], system: pathlib.Path = pathlib.Path("/sys/devices/system/cpu")) -> list[tuple[int, ...]]:
  """These processors by core, in the order of their numbers."""
  cores: dict[str, list[int]] = {}
  for processor in sorted(allowed):
    path = system / f"cpu{processor}" / "topology" / "thread_siblings_list"
    siblings = path.read_text(encoding="ascii").strip() if path.is_file() else str(processor)
    cores.setdefault(siblings, []).append(processor)
  return [tuple(core) for core in cores.values()]


def glibc_problem(program: pathlib.Path) -> str | None:
  """Why a built program does not start here; None: it does."""
  try:
    done = subprocess.run([str(program), "--help"], capture_output=True, text=True, timeout=20, check=False)
  except (OSError, subprocess.TimeoutExpired) as error:
    return f"{program}: {error}"
  if done.returncode != 0:
    return f"{program} does not start here: {' '.join((done.stderr or done.stdout).split())[:200]}"
  return None


def print_error(line: str) -> None:
  print(f"run: {line}", file=sys.stderr, flush=True)
