"""Containers by runc, as a kubelet's runtime has it run them: the bundle's config.json from what a pod's container says."""

import json
import pathlib
import shutil
import subprocess
from typing import Any, Sequence

# What CRI-O and Podman take for RuntimeDefault; bazelw unpacks it.
SECCOMP = pathlib.Path("/var/cache/r2cc/containers-common/usr/share/containers/seccomp.json")
_ARCHITECTURES = {"amd64", "x32", "x86"}
# Those of the container runtime interface's defaults.
_MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
           "/proc/timer_list", "/proc/timer_stats", "/sys/firmware"]
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
_MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
    {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
]


def missing() -> str:
  """Why a test cannot run here; empty if it can."""
  if shutil.which("runc") is None:
    return "needs runc: a package of Debian"
  if not SECCOMP.is_file():
    return f"needs a seccomp profile: {SECCOMP}, which bazelw unpacks on Debian"
  return ""


def seccomp(profile: dict[str, Any], capabilities: Sequence[str]) -> dict[str, Any]:
  """A profile in the words of the runtime specification, for a container with these capabilities."""
  has = {f"CAP_{name}" for name in capabilities}

  def holds(rule: dict[str, Any]) -> bool:
    included, excluded = rule.get("includes", {}), rule.get("excludes", {})
    return ("arches" not in included or bool(_ARCHITECTURES & set(included["arches"]))) and \
        set(included.get("caps", [])) <= has and not _ARCHITECTURES & set(excluded.get("arches", [])) and \
        not has & set(excluded.get("caps", []))
  rules = [{name: rule[name] for name in ("names", "action", "args", "errnoRet") if rule.get(name) is not None}
           for rule in profile["syscalls"] if holds(rule)]
  return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": profile["defaultErrnoRet"],
          "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"], "syscalls": rules}


class Container:
  """One container with its bundle in `folder`. `process`: uid, gid, groups, capabilities, environment, command."""

  def __init__(self, name: str, folder: pathlib.Path, root: pathlib.Path, read_only: bool, netns: str, mounts: list[dict[str, Any]],
               process: dict[str, Any]):
    self._name, self._folder = name, folder
    folder.mkdir()
    capabilities = [f"CAP_{one}" for one in process["capabilities"]]
    self._config = {
        "ociVersion": "1.0.2",
        "root": {"path": str(root), "readonly": read_only},
        "mounts": _MOUNTS + [{"destination": one["target"], "type": "bind", "source": one["source"],
                              "options": ["rbind", "rprivate", "ro" if one["read_only"] else "rw"]} for one in mounts],
        "process": {
            "user": {"uid": process["uid"], "gid": process["gid"], "additionalGids": process["groups"]},
            "args": process["command"], "env": [f"{name}={value}" for name, value in process["environment"].items()], "cwd": "/",
            "capabilities": {kind: capabilities for kind in ("bounding", "effective", "permitted")}, "noNewPrivileges": True,
        },
        "linux": {
            "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"},
                           {"type": "network", "path": f"/run/netns/{netns}"}],
            "maskedPaths": _MASKED, "readonlyPaths": _READ_ONLY,
            "seccomp": seccomp(json.loads(SECCOMP.read_text(encoding="utf-8")), process["capabilities"]),
        },
    }
    (folder / "config.json").write_text(json.dumps(self._config), encoding="utf-8")

  # Without control groups where they cannot be had, as in a container: none is asked for here.
  def _runc(self, *arguments: str) -> list[str]:
    return ["runc", "--root", str(self._folder / "runc"), "--rootless", "true", *arguments]

  def run_command(self) -> list[str]:
    """Runs it, and ends with its exit code."""
    return self._runc("run", "--bundle", str(self._folder), self._name)

  def exec_command(self, command: Sequence[str]) -> list[str]:
    """Runs a command in it while it runs, as a probe."""
    return self._runc("exec", self._name, *command)

  def pid(self) -> int:
    """Of its first process, seen from here."""
    state = subprocess.run(self._runc("state", self._name), check=True, capture_output=True, text=True).stdout
    return int(json.loads(state)["pid"])

  def delete(self) -> None:
    """Kills what still runs of it."""
    subprocess.run(self._runc("delete", "--force", self._name), check=True, capture_output=True)
