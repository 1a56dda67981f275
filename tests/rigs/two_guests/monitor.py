"""What a person could do to a machine from outside: pull its cables, stop its clock. QEMU's monitor protocol (QMP)."""

import contextlib
import json
import pathlib
import socket
from typing import Any

_PATIENCE_S = 60  # an emulated machine on a busy one


class MonitorError(Exception):
  """QEMU refused, or is gone; one line."""


class Monitor:
  """One kept connection to a running QEMU."""

  def __init__(self, path: pathlib.Path):
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    self._socket.settimeout(_PATIENCE_S)
    try:
      self._socket.connect(str(path))
    except OSError as error:
      self._socket.close()
      raise MonitorError(f"{path}: {error.strerror}") from error
    self._stream = self._socket.makefile("rw", encoding="utf-8")
    self._read()  # its greeting
    self.ask("qmp_capabilities")

  def close(self) -> None:
    with contextlib.suppress(OSError):  # what could not be sent
      self._stream.close()
    self._socket.close()

  def ask(self, command: str, **arguments: Any) -> None:
    """Returns when it is done; events that come between are left out."""
    try:
      self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
      self._stream.flush()
    except OSError as error:
      raise MonitorError(f"{command}: {error.strerror}") from error
    while True:
      reply = self._read()
      if "error" in reply:
        raise MonitorError(f"{command}: {reply['error'].get('desc')}")
      if "return" in reply:
        return

  def _read(self) -> dict[str, Any]:
    try:
      line = self._stream.readline()
      reply = json.loads(line) if line else None
    except (OSError, ValueError) as error:
      raise MonitorError(f"QEMU's monitor: {error}") from error
    if not isinstance(reply, dict):
      raise MonitorError("QEMU's monitor has closed")
    return reply
