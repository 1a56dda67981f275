"""A simulated InfiniBand fabric with a real subnet manager: ibsim, OpenSM, and programs whose umad goes to the simulator."""

import os
import pathlib
import shutil
from typing import Mapping, Sequence

from testing.lab.processes import ManagedProcess, Processes, wait_until

FABRIC = pathlib.Path(__file__).absolute().parent / "fabric.net"
# Generous: these waits end as soon as what they wait for is there.
PATIENCE_S = 60
_UMAD_TO_SIMULATOR = pathlib.Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")


def missing_feature() -> str | None:
  for program in ("ibsim", "opensm"):
    if shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin") is None:
      return f"there is no {program} (bazelw installs it)"
  if not _UMAD_TO_SIMULATOR.exists():
    return f"there is no {_UMAD_TO_SIMULATOR} (bazelw installs it)"
  return None


class SimulatedFabric:
  """The hosts are H1 (the subnet manager's), H2 and H3."""

  def __init__(self, folder: pathlib.Path, processes: Processes):
    self._folder = folder
    self._processes = processes
    # The simulator's sockets have abstract names.
    self._socket_name = f"r2cc-{os.getpid()}"
    console = folder / "console"
    os.mkfifo(console)
    self._console_fd = os.open(console, os.O_RDWR)
    self._simulator = processes.start("ibsim", ["/bin/sh", "-c", f"exec ibsim -s '{FABRIC}' < '{console}'"],
                                      {"IBSIM_SOCKNAME": self._socket_name})
    if not wait_until(lambda: self._socket_name in pathlib.Path("/proc/net/unix").read_text(encoding="ascii"), PATIENCE_S):
      raise AssertionError(f"ibsim does not listen: {self._simulator.last_lines()}")
    self._manager_log = folder / "opensm.log"
    options = folder / "opensm.conf"
    # The simulator hands requests, and so reports, only to programs that call themselves subnet managers. OpenSM must not believe it.
    options.write_text("force_log_flush TRUE\nignore_other_sm TRUE\n", encoding="ascii")
    self._manager = self.start("opensm", "H1", ["/usr/sbin/opensm", "-F", str(options), "-D", "3", "-f", str(self._manager_log)],
                               {"OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)})
    if not wait_until(lambda: "SUBNET UP" in self._manager_output(), PATIENCE_S):
      raise AssertionError(f"OpenSM does not bring the subnet up: {self._manager.last_lines()}")

  def close(self) -> None:
    os.close(self._console_fd)

  def start_listener(self, name: str, host: str, argv: Sequence[str]) -> ManagedProcess:
    """Starts a program that is to hear what the subnet manager reports."""
    return self.start(name, host, argv, {"SIM_SET_ISSM": "1"})

  def start(self, name: str, host: str, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> ManagedProcess:
    """Starts a program on a host of the fabric, in a folder of its own: the simulator's library leaves files there."""
    folder = self._folder / f"{name}.cwd"
    folder.mkdir()
    return self._processes.start(
        name, ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(folder), "/usr/bin/env", f"LD_PRELOAD={_UMAD_TO_SIMULATOR}", *argv],
        {"IBSIM_SOCKNAME": self._socket_name, "SIM_HOST": host} | dict(environment or {}))

  def send_command(self, command: str) -> None:
    """A line for the simulator's console."""
    os.write(self._console_fd, f"{command}\n".encode())

  def port_guid(self, host: str) -> str:
    """As the simulator numbers them: a node and its port in turn."""
    return f"0x{0x100001 + 2 * (int(host[1:]) - 1):016x}"

  def _manager_output(self) -> str:
    return self._manager_log.read_text(encoding="utf-8", errors="replace") if self._manager_log.exists() else ""
