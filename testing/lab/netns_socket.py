"""Opens a socket in another network namespace, for link up and down without the delay of starting a program."""

import ctypes
import fcntl
import os
import socket
import struct
import threading

from testing.lab.lab import LabError, monotonic_ns

_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_SIOCGIFINDEX = 0x8933
_SIOCBRADDIF = 0x89A2
_SIOCBRDELIF = 0x89A3
_IFF_UP = 0x1
_IFREQ_FLAGS = struct.Struct("16sH22x")
_IFREQ_INDEX = struct.Struct("16si20x")


class NetnsSocket:
  """Reads and sets the interfaces of one named namespace, or of its own (None)."""

  def __init__(self, namespace: str | None):
    self._where = "" if namespace is None else f" in namespace {namespace}"
    self._socket = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if namespace is None else
                    open_in(namespace, socket.AF_INET, socket.SOCK_DGRAM))

  def close(self) -> None:
    self._socket.close()

  def set_link(self, interface: str, up: bool) -> int:
    """Takes a link up or down; returns CLOCK_MONOTONIC in ns just before the call to the kernel."""
    flags = self._flags(interface)
    request = _IFREQ_FLAGS.pack(interface.encode(), flags | _IFF_UP if up else flags & ~_IFF_UP)
    before_ns = monotonic_ns()
    self._ioctl(interface, _SIOCSIFFLAGS, request)
    return before_ns

  def set_port(self, bridge: str, port: str, member: bool) -> int:
    """Puts a port into a bridge or takes it out; returns CLOCK_MONOTONIC in ns just before the call to the kernel."""
    index = _IFREQ_INDEX.unpack(self._ioctl(port, _SIOCGIFINDEX, _IFREQ_INDEX.pack(port.encode(), 0)))[1]
    before_ns = monotonic_ns()
    self._ioctl(bridge, _SIOCBRADDIF if member else _SIOCBRDELIF, _IFREQ_INDEX.pack(bridge.encode(), index))
    return before_ns

  def link_is_up(self, interface: str) -> bool:
    return bool(self._flags(interface) & _IFF_UP)

  def _flags(self, interface: str) -> int:
    answer = self._ioctl(interface, _SIOCGIFFLAGS, _IFREQ_FLAGS.pack(interface.encode(), 0))
    return int(_IFREQ_FLAGS.unpack(answer)[1])

  def _ioctl(self, interface: str, request: int, argument: bytes) -> bytes:
    try:
      return fcntl.ioctl(self._socket, request, argument)
    except OSError as error:
      raise LabError(f"{interface}{self._where}: {error.strerror}") from error


def open_in(namespace: str, family: int, kind: int, protocol: int = 0) -> socket.socket:
  """A socket belongs to the namespace of the thread that makes it, so a thread enters the namespace, makes it, and ends."""
  made: list[socket.socket] = []
  failed: list[Exception] = []

  def make() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    try:
      descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
      try:
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
          raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
      finally:
        os.close(descriptor)
      made.append(socket.socket(family, kind, protocol))
    except OSError as error:
      failed.append(error)

  thread = threading.Thread(target=make, name=f"setns {namespace}")
  thread.start()
  thread.join()
  if failed:
    raise LabError(f"namespace {namespace} cannot be entered: {failed[0]}")
  return made[0]
