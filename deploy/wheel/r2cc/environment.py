"""The environment variables with which NCCL finds the plugin of this package. Policy: the environment is an argument."""

import pathlib
from typing import Mapping

PLUGIN = "libnccl-net-r2cc.so"
# Variables, each with its value and the values that mean the same.
_WANTED = {"NCCL_NET_PLUGIN": ("r2cc", PLUGIN), "NCCL_NET": ("R2CC",)}


class AnotherPlugin(Exception):
  """One line: the variable, and the way out."""


def variables(libraries: pathlib.Path, given: Mapping[str, str]) -> dict[str, str]:
  """What to set. `libraries` is put before the directories of LD_LIBRARY_PATH, and other variables of the user stay as they are."""
  wanted = {}
  for name, values in _WANTED.items():
    value = given.get(name, "")
    if value and value not in values and value != str(libraries / PLUGIN):
      raise AnotherPlugin(f"{name}={value} names another plugin: unset {name}, or start the job without r2cc")
    wanted[name] = values[0]
  directories = [str(libraries)]
  directories += [path for path in given.get("LD_LIBRARY_PATH", "").split(":") if path and path != str(libraries)]
  wanted["LD_LIBRARY_PATH"] = ":".join(directories)
  return wanted
