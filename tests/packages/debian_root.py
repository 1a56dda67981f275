"""A bare Debian in a folder of its own, with mounts and a network that end with this process."""

import ctypes
import os
import pathlib
import subprocess

TAR = pathlib.Path("/var/cache/r2cc/debian_root_2.tar")
# Of what runs inside.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
# Of linux/sched.h: mounts and network of our own.
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
# What the kernel shows there is no file of anybody's.
_MOUNTS = ("dev", "proc", "sys")


def missing_feature() -> str | None:
  """Why no root can be made here, or None."""
  if os.geteuid() != 0:
    return "needs root: installs packages in a root of its own"
  if not TAR.is_file():
    return f"needs debian_root: no {TAR}; bazelw makes it on Debian 12"
  return None


def leave_the_machine() -> None:
  """Mounts and network of this process are its own from now on; its loopback is up."""
  if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS | _CLONE_NEWNET) != 0:
    raise OSError(ctypes.get_errno(), "unshare")
  subprocess.run(["mount", "--make-rprivate", "/"], check=True)
  subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def unpack(folder: pathlib.Path) -> None:
  """Without devices, which whoever runs it makes."""
  subprocess.run(["tar", "-x", "-f", TAR, "-C", folder, "--exclude=./dev/*"], check=True)


class DebianRoot:
  """The root below `folder`."""

  def __init__(self, folder: pathlib.Path):
    self.path = folder
    unpack(folder)
    subprocess.run(["mount", "-t", "proc", "proc", folder / "proc"], check=True)
    subprocess.run(["mount", "--rbind", "/sys", folder / "sys"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder / "dev"], check=True)
    for name, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)):
      os.mknod(folder / "dev" / name, 0o020666, os.makedev(1, minor))
      os.chmod(folder / "dev" / name, 0o666)
    (folder / "dev/shm").mkdir(mode=0o1777)
    (folder / "dev/shm").chmod(0o1777)

  def close(self) -> None:
    for name in _MOUNTS:
      subprocess.run(["umount", "-R", self.path / name], check=True)

  def command(self, *words: str) -> list[str]:
    return ["chroot", str(self.path), *words]

  def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
    """As root, with the environment of nobody in particular; what it said is in the error."""
    done = subprocess.run(self.command(*words), check=False, capture_output=True, text=True,
                          env=ENVIRONMENT)
    if check and done.returncode != 0:
      raise AssertionError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done

  def files(self) -> dict[str, str]:
    """Every path with what it is: type, mode, owner; of a link where it leads."""
    found = {}
    for folder, names, others in os.walk(self.path):
      if pathlib.Path(folder) == self.path:
        names[:] = [name for name in names if name not in _MOUNTS]
      for name in names + others:
        path = os.path.join(folder, name)
        about = os.lstat(path)
        leads = " -> " + os.readlink(path) if os.path.islink(path) else ""
        found["/" + os.path.relpath(path, self.path)] = f"{about.st_mode:o} {about.st_uid}:{about.st_gid}{leads}"
    return found
