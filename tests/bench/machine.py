"""What a figure depends on beside the programs: the machine, and who else was busy on it. Parsing is pure."""

import ctypes
import dataclasses
import os
import pathlib
import platform
import resource
import time
from typing import Any

# Above this share of all cores somebody else's work is in the figures.
LOADED_SHARE = 0.1
_SAMPLE_S = 1.0


@dataclasses.dataclass(frozen=True)
class CpuSeconds:
  """Of the whole machine since it booted."""
  busy: float
  stolen: float  # by other guests of the host
  total: float


def parse_cpu_seconds(text: str, ticks_per_s: int) -> CpuSeconds:
  """The first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice."""
  name, *fields = text.splitlines()[0].split()
  if name != "cpu" or len(fields) < 8:
    raise ValueError(f"'{text.splitlines()[0]}' is not the first line of /proc/stat")
  user, nice, system, idle, iowait, irq, softirq, steal = (int(field) / ticks_per_s for field in fields[:8])
  busy = user + nice + system + irq + softirq
  return CpuSeconds(busy, steal, busy + steal + idle + iowait)


def cpu_seconds() -> CpuSeconds:
  return parse_cpu_seconds(pathlib.Path("/proc/stat").read_text(encoding="ascii"), os.sysconf("SC_CLK_TCK"))


def busy_share(before: CpuSeconds, after: CpuSeconds) -> float:
  """Of all cores, in between."""
  return round((after.busy - before.busy) / max(1e-9, after.total - before.total), 3)


def own_cpu_seconds() -> float:
  """This process and those of its children that have ended and were waited for."""
  used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
  return sum(one.ru_utime + one.ru_stime for one in used)


def process_cpu_seconds(pid: int) -> float:
  """User and system, of all its threads since it began, to the nanosecond: /proc/PID/stat counts in hundredths of a second, and a daemon
  that has nothing to do uses less than that in one."""
  clock = ctypes.c_int()
  if (error := ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))) != 0:
    raise OSError(error, os.strerror(error), f"process {pid}")
  return time.clock_gettime(clock.value)


def peak_memory_mib(pid: int) -> float:
  """The most that was ever resident."""
  for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
    if line.startswith("VmHWM:"):
      return int(line.split()[1]) / 1024
  raise ValueError(f"process {pid} has no memory")


def _setting(path: str) -> str:
  try:
    return pathlib.Path("/proc/sys", path).read_text(encoding="ascii").strip()
  except OSError:
    return "?"


def describe() -> dict[str, Any]:
  """Takes a second: it looks whether the machine is busy before anything is started."""
  before = cpu_seconds()
  time.sleep(_SAMPLE_S)
  after = cpu_seconds()
  return {
      "cores": os.cpu_count(),
      "kernel": platform.release(),
      "tcp_congestion_control": _setting("net/ipv4/tcp_congestion_control"),
      "loadavg_1min_before": round(os.getloadavg()[0], 2),
      "busy_share_before": round((after.busy + after.stolen - before.busy - before.stolen) / max(1e-9, after.total - before.total), 3),
  }


class OthersShare:
  """How much of the machine others used while this ran."""

  def __init__(self) -> None:
    self._machine, self._own = cpu_seconds(), own_cpu_seconds()

  def share(self) -> float:
    """Of all cores, from the making of this object until now; never below 0."""
    now = cpu_seconds()
    others = now.busy + now.stolen - self._machine.busy - self._machine.stolen - (own_cpu_seconds() - self._own)
    return max(0.0, others / max(1e-9, now.total - self._machine.total))


def headline(facts: dict[str, Any]) -> str:
  return (f"{facts['cores']} cores, Linux {facts['kernel']}, TCP {facts['tcp_congestion_control']}; before the start: load average "
          f"{facts['loadavg_1min_before']}, {100 * facts['busy_share_before']:.0f} % of the cores busy")


def warning(facts: dict[str, Any]) -> str | None:
  """One line if others were busy before or meanwhile; None: the machine was quiet."""
  before, during = facts["busy_share_before"], facts.get("others_share", 0.0)
  if before <= LOADED_SHARE and during <= LOADED_SHARE:
    return None
  return (f"the machine was LOADED BY OTHERS ({100 * before:.0f} % of the cores before the start, {100 * during:.0f} % meanwhile): "
          "these figures are not to be quoted")
