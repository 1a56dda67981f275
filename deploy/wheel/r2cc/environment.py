"""The environment variables with which NCCL finds the plugin of this package. Policy: the environment is an argument."""

import pathlib
import re
from typing import Mapping

PLUGIN = "libnccl-net-r2cc.so"
INTERPOSER = "libr2cc-nccl.so"
# Variables, each with its value and the values that mean the same.
_WANTED = {"NCCL_NET_PLUGIN": ("r2cc", PLUGIN), "NCCL_NET": ("R2CC",)}
# NCCL 2.28 and 2.29 forget the plugin's name with the last communicator, and the next one fails. A first reference keeps it.
_KEPT = "NCCL_NET_PLUGIN_REF_COUNT"
_WANTED_FOR_SEAT = {"NCCL_TUNER_PLUGIN": ("r2cc", "libnccl-tuner-r2cc.so")}


class AnotherPlugin(Exception):
  """One line: the variable, and the way out."""


def variables(libraries: pathlib.Path, given: Mapping[str, str], seat: bool = False) -> dict[str, str]:
  """What to set. `libraries` is put before the directories of LD_LIBRARY_PATH, and other variables of the user stay as they are. `seat`:
  also a place in NCCL's tree for a node that has lost rails."""
  wanted = {}
  for name, values in {**_WANTED, **(_WANTED_FOR_SEAT if seat else {})}.items():
    value = given.get(name, "")
    if value and value not in values and value != str(libraries / PLUGIN):
      raise AnotherPlugin(f"{name}={value} names another plugin: unset {name}, or start the job without r2cc")
    wanted[name] = values[0]
  wanted[_KEPT] = given.get(_KEPT) or "1"
  directories = [str(libraries)]
  directories += [path for path in given.get("LD_LIBRARY_PATH", "").split(":") if path and path != str(libraries)]
  wanted["LD_LIBRARY_PATH"] = ":".join(directories)
  if seat:
    interposer = str(libraries / INTERPOSER)
    others = [path for path in re.split("[ :]", given.get("LD_PRELOAD", "")) if path and path != interposer]
    wanted["LD_PRELOAD"] = ":".join([interposer, *others])
    wanted["R2CC_SEAT"] = "1"
  return wanted
