"""Two emulated machines, one a node, joined by cables that can be pulled from outside: two kernels with clocks and memory of their own.

Each has one card for what goes beside the rails and one a rail (cards.sh), whose cable is a pair of UDP sockets on the host's loopback
interface: what nobody takes is lost, as on a wire.
"""

import contextlib
import pathlib
import socket
import tempfile
import time
from types import TracebackType
from typing import Callable, Mapping, Sequence

from testing.guest import guest
from testing.lab.processes import wait_until
from tests.rigs.two_guests.monitor import Monitor

_HERE = pathlib.Path(__file__).absolute().parent
_POLL_S = 0.05
_SO_RCVBUFFORCE = 33  # asm-generic/socket.h; Python has no name for it
_BUFFER_BYTES = 8 << 20
_MONITOR_S = 60


def cable() -> tuple[socket.socket, socket.socket]:
  """Two ends; what one sends the other receives."""
  ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
  for end in ends:
    end.bind(("127.0.0.1", 0))
    # Room for what soft-RoCE sends at once while the other machine waits for a processor: what is lost costs it a timeout of 134 ms, and
    # seven of these its queue pair. Without root it is what the system allows.
    try:
      end.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    except PermissionError:
      end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
  ends[0].connect(ends[1].getsockname())
  ends[1].connect(ends[0].getsockname())
  for end in ends:
    end.set_inheritable(True)
  return ends[0], ends[1]


def card_arguments(number: int, node: int, descriptor: int) -> list[str]:
  """Of QEMU. In the order of their slots the guest calls them eth0, eth1, ..."""
  return ["-netdev", f"dgram,id=cable{number},local.type=fd,local.str={descriptor}",
          "-device", f"virtio-net-pci,id=card{number},netdev=cable{number},mac=52:54:00:00:{number:02x}:{node:02x},romfile=,"
          f"addr={16 + number:#x}"]


class TwoGuests:
  """A context manager. Node 0 is guest 1 of cards.sh, node 1 guest 2."""

  def __init__(self, rails: int, show: Callable[[str], None] = print):
    self._rails, self._show = rails, show

  def __enter__(self) -> "TwoGuests":
    with contextlib.ExitStack() as stack:
      cables = [cable() for _ in range(1 + self._rails)]
      for ends in cables:
        for end in ends:
          stack.callback(end.close)
      # In /tmp whatever TMPDIR says: the path of a Unix socket has room for 107 bytes.
      self._folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="r2cc-two-guests-", dir="/tmp")))
      self.guests = []
      for node in (0, 1):
        ends = [pair[node] for pair in cables]
        arguments = [word for number, end in enumerate(ends) for word in card_arguments(number, node + 1, end.fileno())]
        hardware = guest.Hardware(script=_HERE / "cards.sh", modules=("virtio_net",), descriptors=tuple(end.fileno() for end in ends),
                                  arguments=(*arguments, "-qmp", f"unix:{self._monitor_path(node)},server=on,wait=off"))
        self.guests.append(stack.enter_context(
            guest.Guest(self._rails, str(node + 1), lambda line, node=node: self._show(f"n{node} {line}"), hardware=hardware)))
      self._monitors: dict[int, Monitor] = {}
      self._stack = stack.pop_all()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    for monitor in self._monitors.values():
      monitor.close()
    self._stack.close()

  def begin(self, commands: Sequence[Sequence[str]], environment: Mapping[str, str], limit_s: float) -> None:
    """Boots both, each with its own command."""
    for machine, argv in zip(self.guests, commands):
      machine.begin(argv, environment, limit_s)

  def await_(self, holds: Callable[[], bool], timeout_s: float) -> bool:
    """Until `holds`, showing what both say; False: it never did, or no machine is left. GuestError: as Guest.goes_on()."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
      living = [machine.goes_on() for machine in self.guests]
      if time.monotonic() > deadline_s or not any(living):
        return holds()
      time.sleep(_POLL_S)
    return True

  def set_cable(self, node: int, rail: int, plugged: bool) -> None:
    """This end alone: its card has no carrier, the other end silence."""
    self._monitor(node).ask("set_link", name=f"card{rail + 1}", up=plugged)

  def freeze(self, node: int) -> None:
    """Its processor and its clock stand still."""
    self._monitor(node).ask("stop")

  def thaw(self, node: int) -> None:
    self._monitor(node).ask("cont")

  def _monitor_path(self, node: int) -> pathlib.Path:
    return self._folder / f"qmp{node}"

  def _monitor(self, node: int) -> Monitor:
    if node not in self._monitors:
      wait_until(self._monitor_path(node).exists, _MONITOR_S)
      self._monitors[node] = Monitor(self._monitor_path(node))
    return self._monitors[node]
