"""Runs an emulated machine that has both nodes in it: soft-RoCE devices over cables that can be pulled. No KVM, no root.

The guest sees the host's files, read-only beneath a layer in memory, so a command is given by its path on the host. It has one processor on
purpose: with two, soft-RoCE of Linux 6.1 damages its kernel when a queue pair is reset.
"""

import dataclasses
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Callable, Mapping, Sequence

from testing.lab.processes import ManagedProcess, Processes
from testing.guest import kernel

_HERE = pathlib.Path(__file__).absolute().parent
_PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86_64", "busybox": "/bin/busybox", "modinfo": "/sbin/modinfo", "rdma": "rdma"}
_PROVIDERS = pathlib.Path("/etc/libibverbs.d/rxe.driver")
# rdma_rxe loads crc32_generic by a name that is not among its dependencies. sch_tbf is for slow rails, sch_netem for lossy ones.
_MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm", "veth", "bridge",
            "sch_tbf", "sch_netem")
_POLL_S = 0.02
# A guest is ready after 11 s on an idle machine. A loaded machine may take a multiple.
_READY_S = 120
_POWER_OFF_S = 30


def missing_feature() -> str | None:
  """Why no guest can run on this machine; None: it can. Tests that skip for it print "needs one_guest: " first."""
  if platform.machine() != "x86_64":
    return f"the guest is an x86-64, this machine a {platform.machine()}"
  for name, program in _PROGRAMS.items():
    if shutil.which(program) is None:
      return f"there is no {name} (R2CC's bazelw installs it)"
  if not _PROVIDERS.exists():
    return f"there is no {_PROVIDERS} (R2CC's bazelw installs it)"
  if not kernel.FOLDER.is_dir():
    return f"there is no kernel in {kernel.FOLDER} (R2CC's bazelw unpacks it on Debian)"
  return None


class GuestError(Exception):
  """The command did not end normally; the message has how far the guest came, and its last output."""


@dataclasses.dataclass(frozen=True)
class Hardware:
  """What a guest has in addition to its processor and the host's files. The default is nothing, because its rails are veth devices."""
  # Run as root in the guest with the arguments that Guest got, before the command: makes the rails.
  script: pathlib.Path = _HERE / "rails.sh"
  arguments: tuple[str, ...] = ()  # of QEMU
  descriptors: tuple[int, ...] = ()  # that QEMU inherits
  modules: tuple[str, ...] = ()
  memory_mib: int = 1024  # the system itself takes 113


@dataclasses.dataclass(frozen=True)
class Result:
  """How a command in the guest ended."""
  status: int
  output: str
  kernel_log: str
  # The folder in which the command left its files, as $R2CC_GUEST_OUT there. It is deleted with the Guest.
  folder: pathlib.Path

  def kernel_complaints(self) -> list[str]:
    """The lines with which a damaged kernel reports its damage."""
    found = re.compile(r"WARNING:|BUG:|Oops|refcount_t|general protection|Call Trace|blocked for more than|use-after-free")
    return [line for line in self.kernel_log.splitlines() if found.search(line)]


def _console_lines(text: str) -> list[str]:
  """The lines without the firmware's terminal control sequences."""
  return [line.strip() for line in re.sub(r"\x1bc|\x1b\[[0-9;?=]*[a-zA-Z]", "", text).splitlines() if line.strip()]


class _Follower:
  """Hands over the lines of a file as they are written."""

  def __init__(self, path: pathlib.Path):
    self._path, self._at = path, 0

  def lines(self) -> list[str]:
    """The lines that were completed since the last call."""
    if not self._path.exists():
      return []
    with open(self._path, "rb") as file:
      file.seek(self._at)
      fresh = file.read()
    end = fresh.rfind(b"\n") + 1
    self._at += end
    return fresh[:end].decode("utf-8", "replace").splitlines()


class Guest:
  """A context manager: no process and no file of a guest outlives it. It runs one command at a time: run(), or begin(), then goes_on()
  until that is false, and result().

  `show` gets each line of progress and of the command's output as it comes; by default it is printed with the seconds since the start.
  """

  def __init__(self, rails: int = 2, wiring: str = "pair", show: Callable[[str], None] | None = None, ready_s: float = _READY_S,
               hardware: Hardware = Hardware()):
    self._rails, self._wiring, self._ready_s, self._hardware = rails, wiring, ready_s, hardware
    self._show = show or self._print
    self._start_s = time.monotonic()

  def __enter__(self) -> "Guest":
    # In the test's own folder, which Bazel empties even after a test that was killed.
    self._temporary = tempfile.TemporaryDirectory(prefix="r2cc-guest-", dir=os.environ.get("TEST_TMPDIR"))
    self._folder = pathlib.Path(self._temporary.name)
    self._processes = Processes(self._folder)
    return self

  def __exit__(self, *_) -> None:
    self._processes.end_all()
    self._temporary.cleanup()

  def run(self, argv: Sequence[str | pathlib.Path], environment: Mapping[str, str] | None = None, limit_s: float = 120) -> Result:
    """Boots, runs `argv` as root in the guest for `limit_s` at most, and powers off. GuestError: it did not end normally."""
    self.begin(argv, environment, limit_s)
    while self.goes_on():
      time.sleep(_POLL_S)
    return self.result()

  @property
  def out(self) -> pathlib.Path:
    """The folder of the running command: what the command writes there is visible at once."""
    return self._folder / "shared/out"

  def begin(self, argv: Sequence[str | pathlib.Path], environment: Mapping[str, str] | None = None, limit_s: float = 120) -> None:
    """The first part of run()."""
    self._start_s = time.monotonic()
    shared = self._folder / "shared"
    shutil.rmtree(shared, ignore_errors=True)
    (shared / "out").mkdir(parents=True)
    folder = pathlib.Path.cwd()
    (shared / "settings").write_text(f"rails={self._rails} wiring={self._wiring} folder={shlex.quote(str(folder))}\n", encoding="utf-8")
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in (environment or {}).items())
    (shared / "command").write_text(exports + "exec " + shlex.join(str(word) for word in argv) + "\n", encoding="utf-8")
    self._build_root()
    self._show("boot")
    self._machine = self._start(shared)
    self._console, self._output = _Follower(self._folder / "console"), _Follower(shared / "output")
    self._phase, self._limit_s, self._deadline_s = "boots", limit_s, self._start_s + self._ready_s

  def goes_on(self) -> bool:
    """Shows what has come since; False: the machine is off. GuestError: it took too long, and is stopped."""
    over = not self._machine.is_alive()
    now_s = time.monotonic()
    for line in (line for text in self._console.lines() for line in _console_lines(text)):
      if line.startswith("@@failed"):
        self.kill()
        raise GuestError(f"the guest could not be set up: {line.removeprefix('@@failed: ')}")
      self._show(line.removeprefix("@@"))
      if line == "@@rails are up":
        self._phase, self._deadline_s = "runs the command", now_s + self._limit_s
    for line in self._output.lines():
      self._show(f"| {line}")
    if self._phase == "runs the command" and (self._folder / "shared/status").exists():
      self._phase, self._deadline_s = "powers off", now_s + _POWER_OFF_S
    if not over and now_s > self._deadline_s:
      words = self._last_lines()
      self.kill()
      raise GuestError(f"the guest was stopped after {now_s - self._start_s:.0f} s, it still {self._phase}: {words}")
    return not over

  def kill(self) -> None:
    """Like a machine that loses its power."""
    self._machine.kill()

  def result(self) -> Result:
    """Call it when the machine is off. GuestError: the command had not ended normally."""
    shared = self._folder / "shared"
    status = shared / "status"
    if not status.exists() or not status.read_text(encoding="ascii").strip():
      raise GuestError(f"the guest ended before the command did: {self._last_lines()}")
    return Result(status=int(status.read_text(encoding="ascii")), output=(shared / "output").read_text(encoding="utf-8", errors="replace"),
                  kernel_log=(shared / "kernel.log").read_text(encoding="utf-8", errors="replace"), folder=shared / "out")

  def _build_root(self) -> None:
    """Writes the kernel and its first file system into the folder; once."""
    if (self._folder / "initramfs").exists():
      return
    unpacked = kernel.Kernel(kernel.FOLDER)
    (self._folder / "vmlinux").write_bytes(unpacked.elf())
    root = self._folder / "root"
    for name in ("bin", "proc", "sys", "dev", "modules"):
      (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for number, module in enumerate(unpacked.modules((*_MODULES, *self._hardware.modules))):
      shutil.copy(module, root / f"modules/{number:03}_{module.name}")
    for file, name in ((_HERE / "init.sh", "init"), (_HERE / "start.sh", "start.sh"), (self._hardware.script, "rails.sh")):
      shutil.copy(file, root / name)
    (root / "init").chmod(0o755)
    names = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*"))) + "\n"
    with open(self._folder / "initramfs", "wb") as archive:
      subprocess.run(["/bin/busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=names.encode(), stdout=archive,
                     stderr=subprocess.DEVNULL, check=True)
    shutil.rmtree(root)

  def _start(self, shared: pathlib.Path) -> ManagedProcess:
    console = self._folder / "console"
    console.write_bytes(b"")
    export = "security_model=none,multidevs=remap"
    return self._processes.start("qemu", [
        "qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", str(self._hardware.memory_mib), "-no-reboot",
        "-nodefaults", "-display", "none", "-serial", f"file:{console}",
        "-kernel", str(self._folder / "vmlinux"), "-initrd", str(self._folder / "initramfs"),
        "-append", "console=ttyS0 quiet panic=1 nokaslr mitigations=off",
        "-fsdev", f"local,id=host,path=/,readonly=on,{export}", "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
        "-fsdev", f"local,id=guest,path={shared},{export}", "-device", "virtio-9p-pci,fsdev=guest,mount_tag=guest",
        *self._hardware.arguments,
    ], descriptors=self._hardware.descriptors)

  def _last_lines(self) -> str:
    console = _console_lines((self._folder / "console").read_text(encoding="utf-8", errors="replace"))
    output = self._folder / "shared/output"
    printed = output.read_text(encoding="utf-8", errors="replace").splitlines() if output.exists() else []
    panic = [line for line in console if "Kernel panic" in line]
    return f"console: {' | '.join(panic or console[-3:])}; command: {' | '.join(printed[-3:])}; qemu: {self._machine.last_lines()}"

  def _print(self, line: str) -> None:
    print(f"{time.monotonic() - self._start_s:7.2f} s  {line}", file=sys.stderr, flush=True)
