"""Commands from the orchestrator to ranks and answers back: JSON lines over a Unix socket, which reaches through network namespaces."""

import json
import select
import socket
import time
from typing import Any


class RankEnd:
  """A rank's end. Every message from here is an object; whoever reads it knows the rank by its first one."""

  def __init__(self, path: str, rank: int):
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    self._socket.connect(path)
    self._buffer = b""
    self.send({"hello": rank})

  def send(self, message: dict[str, Any]) -> None:
    self._socket.sendall(json.dumps(message).encode() + b"\n")

  def pending(self) -> bool:
    """Whether a command waits."""
    return b"\n" in self._buffer or bool(select.select([self._socket], [], [], 0)[0])

  def receive(self) -> dict[str, Any]:
    """Waits for a command; EOFError when the orchestrator is gone."""
    while b"\n" not in self._buffer:
      try:
        got = self._socket.recv(1 << 16)
      except ConnectionError:
        got = b""
      if not got:
        raise EOFError("the orchestrator is gone")
      self._buffer += got
    line, self._buffer = self._buffer.split(b"\n", 1)
    return json.loads(line)


class RankPeer:
  """The orchestrator's end of one rank."""

  def __init__(self, connection: socket.socket):
    self._socket = connection
    self._socket.setblocking(False)
    self._buffer = b""
    self.is_open = True

  def fileno(self) -> int:
    return self._socket.fileno()

  def close(self) -> None:
    self.is_open = False
    self._socket.close()

  def send(self, message: dict[str, Any], timeout_s: float = 5.0) -> None:
    """Commands are short: a rank that takes none for so long is lost anyway. An OSError says so."""
    data, deadline_s = json.dumps(message).encode() + b"\n", time.monotonic() + timeout_s
    while data:
      left_s = deadline_s - time.monotonic()
      if left_s <= 0 or not select.select([], [self._socket], [], left_s)[1]:
        raise TimeoutError("the rank takes no command")
      data = data[self._socket.send(data):]

  def received(self) -> list[dict[str, Any]]:
    """All whole messages that have come."""
    while self.is_open:
      try:
        got = self._socket.recv(1 << 18)
      except BlockingIOError:
        break
      except OSError:
        got = b""
      if not got:
        self.close()
        break
      self._buffer += got
    *lines, self._buffer = self._buffer.split(b"\n")
    return [json.loads(line) for line in lines]
