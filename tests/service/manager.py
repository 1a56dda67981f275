"""A stand-in for systemd, for one service of Type=notify: it hears NOTIFY_SOCKET, and kills on a missed watchdog.

It keeps to sd_notify(3): only the main process is heard (NotifyAccess=main), and the kernel says who that is. What the service has it
keep (FDSTORE=1), up to FileDescriptorStoreMax= descriptors, the next run of it is handed as LISTEN_FDS, as sd_listen_fds(3) has it.
"""

import array
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time

# Generous: each wait ends as soon as what it waits for is there.
PATIENCE_S = 30
_CREDENTIALS = struct.Struct("3i")
_FIRST_HANDED = 3


class Manager:
  """Starts `command` again and again, as Restart=always does; `kills` counts the watchdog's."""

  def __init__(self, command: list[str], folder: pathlib.Path, watchdog_s: float, environment: dict[str, str] | None = None,
               store_max: int = 0):
    self.command = command
    self.folder = folder
    self.watchdog_s = watchdog_s
    self.environment = environment or {}
    self.process: subprocess.Popen | None = None
    self.words: dict[str, str] = {}  # the newest of each name, of this run
    self.received: list[str] = []
    self.kills = 0
    self.store_max = store_max
    self.store: dict[str, int] = {}  # descriptors by name
    self._fed = 0.0
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    self._address = str(folder / "notify")
    self._socket.bind(self._address)
    os.chmod(self._address, 0o777)  # as systemd's own
    self._socket.settimeout(0.05)

  def __enter__(self):
    return self

  def __exit__(self, *_):
    if self.process is not None and self.process.poll() is None:
      self.process.kill()
      self.process.wait()
    self._socket.close()
    for descriptor in self.store.values():
      os.close(descriptor)

  def start(self) -> None:
    """One run of the service; its output is in `log`."""
    environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": self._address, **self.environment}
    if self.watchdog_s:
      environment["WATCHDOG_USEC"] = str(int(self.watchdog_s * 1e6))
    self.words = {}
    self.received = []
    command, handed = self.command, list(self.store.items())
    if handed:
      environment |= {"LISTEN_FDS": str(len(handed)), "LISTEN_FDNAMES": ":".join(name for name, _ in handed)}
      # Who runs the service is not known before.
      command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *command]
    places = range(_FIRST_HANDED, _FIRST_HANDED + len(handed))

    def put_in_place() -> None:
      # First out of the way of each other.
      for place, copy in zip(places, [fcntl.fcntl(fd, fcntl.F_DUPFD, places.stop) for _, fd in handed]):
        os.dup2(copy, place)

    with open(self.folder / "service.log", "ab") as log:
      self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=places,
                                      preexec_fn=put_in_place)
    self._fed = time.monotonic()

  @property
  def log(self) -> str:
    """What the service has written, over all runs."""
    return (self.folder / "service.log").read_text(encoding="utf-8", errors="replace")

  def turn(self) -> None:
    """Hears what has come, and keeps the watchdog."""
    try:
      data, control, _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(array.array("i").itemsize))
    except TimeoutError:
      data, control = b"", []
    words = {kind: value for _, kind, value in control}
    descriptors = list(array.array("i", words.get(socket.SCM_RIGHTS, b"")))
    if data:
      pid = _CREDENTIALS.unpack(words[socket.SCM_CREDENTIALS])[0]
      if self.process is not None and pid == self.process.pid:
        for line in data.decode().splitlines():
          name, _, value = line.partition("=")
          self.words[name] = value
          self.received.append(line)
          if name in ("READY", "WATCHDOG"):
            self._fed = time.monotonic()
        self._keep(dict(line.partition("=")[::2] for line in data.decode().splitlines()), descriptors)
    for descriptor in descriptors:
      os.close(descriptor)
    late = self.words.get("READY") == "1" and "STOPPING" not in self.words and time.monotonic() - self._fed > self.watchdog_s
    if self.watchdog_s and late and self.process.poll() is None:
      self.kills += 1
      self.process.send_signal(signal.SIGKILL)  # systemd begins with SIGABRT, and ends with this
      self.process.wait()

  def _keep(self, words: dict[str, str], descriptors: list[int]) -> None:
    name = words.get("FDNAME", "stored")
    if words.get("FDSTOREREMOVE") == "1" and name in self.store:
      os.close(self.store.pop(name))
    # The same again is not kept twice.
    if words.get("FDSTORE") == "1" and descriptors and name not in self.store and len(self.store) < self.store_max:
      self.store[name] = os.dup(descriptors[0])

  def until(self, there, patience_s: float = PATIENCE_S) -> bool:
    """Goes on until `there()` is true; False: it did not become so."""
    end = time.monotonic() + patience_s
    while not there():
      if time.monotonic() > end:
        return False
      self.turn()
    return True

  def run_for(self, seconds: float) -> None:
    """Goes on for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
      self.turn()

  def start_and_wait(self) -> bool:
    """Starts it; True once it says that it serves."""
    self.start()
    return self.until(lambda: self.words.get("READY") == "1" or self.process.poll() is not None) and self.process.poll() is None
