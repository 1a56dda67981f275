"""When the kernel told of a link: an independent listener to the NETLINK_ROUTE events of a network namespace."""

import os
import select
import socket
import struct
import threading
from types import TracebackType
from typing import Sequence

from testing.lab.lab import monotonic_ns
from testing.lab.netns_socket import open_in

_RTM_NEWLINK = 16
_RTMGRP_LINK = 1
_IFLA_IFNAME = 3
_WORKING = 0x1 | 0x10000  # IFF_UP, IFF_LOWER_UP
_HEADER = struct.Struct("=IHHII")
_IFINFO = struct.Struct("=BxHiII")
_ATTRIBUTE = struct.Struct("=HH")
_MESSAGE_BYTES_MAX = 1 << 16


def links_down(datagram: bytes) -> list[str]:
  """The interfaces that a datagram of the kernel calls down: by the operator, or without a carrier. Pure."""
  names, at = [], 0
  while at + _HEADER.size <= len(datagram):
    length, kind = _HEADER.unpack_from(datagram, at)[:2]
    end = min(at + length, len(datagram))
    if length < _HEADER.size:
      break
    if kind == _RTM_NEWLINK and at + _HEADER.size + _IFINFO.size <= end:
      flags = _IFINFO.unpack_from(datagram, at + _HEADER.size)[3]
      if flags & _WORKING != _WORKING:
        names += _names(datagram[at + _HEADER.size + _IFINFO.size:end])
    at += (length + 3) & ~3
  return names


def _names(attributes: bytes) -> list[str]:
  at = 0
  while at + _ATTRIBUTE.size <= len(attributes):
    length, kind = _ATTRIBUTE.unpack_from(attributes, at)
    if length < _ATTRIBUTE.size:
      break
    if kind == _IFLA_IFNAME:
      return [attributes[at + _ATTRIBUTE.size:at + length].split(b"\0")[0].decode(errors="replace")]
    at += (length + 3) & ~3
  return []


class LinkListener:
  """Listens in all of the namespaces at once, on a thread of its own that no other of normal priority holds up. A context manager."""

  def __init__(self, namespaces: Sequence[str]):
    self._stop, self._stopped = socket.socketpair()
    self._received: list[tuple[int, str, bytes]] = []
    self._thread = threading.Thread(target=self._listen, name="link-listener")
    self._namespace_of: dict[socket.socket, str] = {}
    for namespace in namespaces:
      listening = open_in(namespace, socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
      self._namespace_of[listening] = namespace
      listening.bind((0, _RTMGRP_LINK))

  def __enter__(self) -> "LinkListener":
    self._thread.start()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    self._stop.close()
    self._thread.join()
    for listening in (self._stopped, *self._namespace_of):
      listening.close()

  def _listen(self) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)
    while True:
      ready = select.select([self._stopped, *self._namespace_of], [], [])[0]
      now_ns = monotonic_ns()
      if self._stopped in ready:
        return
      for listening in ready:
        try:
          self._received.append((now_ns, self._namespace_of[listening], listening.recv(_MESSAGE_BYTES_MAX)))
        except OSError:  # the kernel could not keep what it told: the next one counts
          continue

  def down_ns(self, namespace: str, interface: str, since_ns: int) -> int | None:
    """CLOCK_MONOTONIC at which the kernel's word came that `interface` is down."""
    return next((when_ns for when_ns, where, datagram in list(self._received)
                 if when_ns >= since_ns and where == namespace and interface in links_down(datagram)), None)
