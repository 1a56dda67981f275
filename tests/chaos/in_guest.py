"""Runs the whole of chaos in an emulated machine: this machine's kernel may lack netem, bonds and VLANs."""

import os
import pathlib
import shutil
import sys

from testing.guest import guest

_OUT = "R2CC_GUEST_OUT"  # start.sh sets it
# nf_tables and its numbers are for lost packets, tcp_diag is for ss. libcrc32c of nf_tables asks for crc32c by a name that is not among its
# dependencies.
_MODULES = ("crc32c_generic", "bonding", "8021q", "nf_tables", "nft_numgen", "tcp_diag")
_MEMORY_MIB = 3072
# What an emulated processor needs for the start, the warm-up and the judgement.
_MORE_S = 600


def is_inside() -> bool:
  return _OUT in os.environ


def run(argv: list[str], seconds: float, out: pathlib.Path | None) -> int:
  """Its exit code there; its reports are in `out`. GuestError: it did not end."""
  if (reason := guest.missing_feature()) is not None:
    raise guest.GuestError(f"no guest can run here: {reason}")
  hardware = guest.Hardware(script=pathlib.Path(__file__).with_name("no_rails.sh"), modules=_MODULES, memory_mib=_MEMORY_MIB)
  environment = {name: os.environ[name] for name in ("BUILD_WORKING_DIRECTORY",) if name in os.environ}
  environment["PYTHONPATH"] = os.pathsep.join(sys.path)
  with guest.Guest(hardware=hardware) as machine:
    # The last --out counts.
    command = [sys.executable, "-m", "tests.chaos.main", *argv, "--out", "/run/guest/out"]
    result = machine.run(command, environment, seconds + _MORE_S)
    if out is not None:
      shutil.copytree(result.folder, out, dirs_exist_ok=True)
    return result.status
