"""Becomes one container: container.py SPEC, a JSON object. As root, in a mount and a pid namespace of its own.

What a container runtime does with a pod's securityContext and mounts, by the same calls of the kernel. A seccomp profile is not among them.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)
# linux/prctl.h and linux/capability.h.
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = {"CHOWN": 0}
_CAPABILITY_LAST = int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="ascii"))


def _mount(*arguments: str) -> None:
  subprocess.run(["mount", *arguments], check=True)


def _prctl(option: int, value: int) -> None:
  if _LIBC.prctl(option, value, 0, 0, 0) != 0:
    sys.exit(f"container.py: prctl {option} {value}: {os.strerror(ctypes.get_errno())}")


def _file_system(root: str, mounts: list[dict], read_only: bool) -> None:
  """Makes `root` the container's; what is mounted was made in it before."""
  _mount("--make-rprivate", "/")
  _mount("--bind", root, root)
  _mount("-t", "proc", "proc", f"{root}/proc")
  _mount("-t", "sysfs", "-o", "ro", "sysfs", f"{root}/sys")
  _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/dev")
  for name in ("null", "zero", "random", "urandom"):
    pathlib.Path(f"{root}/dev/{name}").touch()
    _mount("--bind", f"/dev/{name}", f"{root}/dev/{name}")
  for mount in mounts:
    target = root + mount["target"]
    _mount("--bind", mount["source"], target)
    if mount["read_only"]:
      _mount("-o", "remount,ro,bind", target)
  if read_only:
    _mount("-o", "remount,ro,bind", root)


def main() -> None:
  spec = json.loads(sys.argv[1])
  _file_system(spec["root"], spec["mounts"], spec["read_only"])
  os.chroot(spec["root"])
  os.chdir("/")
  kept = {_CAPABILITIES[name] for name in spec["capabilities"]}
  for capability in range(_CAPABILITY_LAST + 1):
    if capability not in kept:
      _prctl(_PR_CAPBSET_DROP, capability)
  os.setgroups(spec["groups"])
  os.setgid(spec["gid"])
  os.setuid(spec["uid"])
  _prctl(_PR_SET_NO_NEW_PRIVS, 1)
  os.umask(0o022)
  os.execve(spec["command"][0], spec["command"], spec["environment"])


if __name__ == "__main__":
  main()
