"""One job: its ranks in their nodes' namespaces, what they are told, and what they report."""

import contextlib
import dataclasses
import os
import pathlib
import select
import socket
import time
from typing import Any, Callable

from testing.lab.lab import monotonic_ns
from testing.lab.processes import ManagedProcess
from tests.gpu import figures
from tests.gpu.control import RankPeer
from tests.gpu.figures import Row

TICK_S = 0.02
START_S, STOP_S, QUIT_S = 150.0, 60.0, 20.0
# Longer than any fault here lasts and than R2CC waits for a lost peer: a loop that completes nothing for so long hangs.
HANG_S = 45.0


class JobBroken(Exception):
  """The job died or hangs: an error of what is tested, not of the rig. One line."""


@dataclasses.dataclass
class _Rank:
  """What is known of one."""
  process: ManagedProcess
  peer: RankPeer | None = None
  ready: dict[str, Any] | None = None
  rows: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)
  wrong: int = 0
  error: str | None = None
  replies: list[dict[str, Any]] = dataclasses.field(default_factory=list)
  events: list[dict[str, Any]] = dataclasses.field(default_factory=list)


class Job:
  """`start(rank, socket path)` starts one rank."""

  def __init__(self, name: str, world: int, folder: pathlib.Path, start: Callable[[int, str], ManagedProcess]):
    self.name, self.world = name, world
    self._path = folder / f"{name}.sock"
    self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    self._listener.bind(str(self._path))
    self._listener.listen(world)
    self._waiting: list[RankPeer] = []
    self._moved_s = time.monotonic()
    self._ranks = [_Rank(start(rank, str(self._path))) for rank in range(world)]

  # What ranks say.

  def poll(self, wait_s: float = 0.0) -> None:
    """Takes in whatever has come."""
    peers = [rank.peer for rank in self._ranks if rank.peer is not None and rank.peer.is_open]
    ready, _, _ = select.select([self._listener, *self._waiting, *peers], [], [], wait_s)
    if self._listener in ready:
      self._waiting.append(RankPeer(self._listener.accept()[0]))
    for peer in list(self._waiting):
      messages = peer.received()
      if messages:
        rank = self._ranks[messages[0]["hello"]]
        rank.peer = peer
        self._waiting.remove(peer)
        self._take(rank, messages[1:])
    for rank in self._ranks:
      if rank.peer is not None and rank.peer.is_open:
        self._take(rank, rank.peer.received())

  def _take(self, rank: _Rank, messages: list[dict[str, Any]]) -> None:
    for message in messages:
      if "rows" in message:
        for number, begin_ns, end_ns in message["rows"]:
          rank.rows[number] = (begin_ns, end_ns)
          self._moved_s = time.monotonic()
        rank.wrong = message["wrong"]
      elif "error" in message:
        rank.error = message["error"]
      elif "done" in message:
        rank.replies.append(message)
      elif message.get("event") == "ready":
        rank.ready = message
      elif "event" not in message:
        rank.events.append(message)

  def look(self, wait_s: float = 0.0) -> None:
    """poll(), and JobBroken if a rank is gone."""
    self.poll(wait_s)
    broken = [number for number, rank in enumerate(self._ranks) if rank.error is not None or not rank.process.is_alive()]
    if broken:
      self._let_others_speak()
      raise JobBroken(self.last_lines())

  def _let_others_speak(self) -> None:
    deadline_s = time.monotonic() + 1.0
    while time.monotonic() < deadline_s and any(rank.process.is_alive() for rank in self._ranks):
      self.poll(TICK_S)

  def last_lines(self) -> str:
    """Of the ranks that ended badly, or of all."""
    result = []
    for number, rank in enumerate(self._ranks):
      if rank.error is not None:
        result.append(f"rank {number}: {rank.error}")
      elif not rank.process.is_alive():
        result.append(f"rank {number} ended with {rank.process.returncode}: {rank.process.last_lines()[-400:]}")
    return " || ".join(result[:3]) or "all ranks live: " + " || ".join(rank.process.last_lines(1)[-160:] for rank in self._ranks[:4])

  def _until(self, condition: Callable[[], bool], limit_s: float, what: str) -> None:
    deadline_s = time.monotonic() + limit_s
    while not condition():
      self.look(TICK_S)
      if time.monotonic() > deadline_s:
        raise JobBroken(f"{self.name}: {what} took more than {limit_s:g} s; {self.last_lines()}")

  # The job.

  def wait_ready(self, limit_s: float = START_S) -> dict[str, Any]:
    """Until all ranks have done their first collective; what rank 0 says of versions."""
    self._until(lambda: all(rank.ready is not None for rank in self._ranks), limit_s, "the start")
    ready = [rank.ready or {} for rank in self._ranks]
    if wrong := sum(one["wrong"] for one in ready):
      raise JobBroken(f"{self.name}: {wrong} wrong elements in the first all_reduce")
    return {name: value for name, value in ready[0].items() if name not in ("event", "wrong")}

  def send(self, command: dict[str, Any], ranks: list[int] | None = None) -> None:
    for number in range(self.world) if ranks is None else ranks:
      peer = self._ranks[number].peer
      try:
        if peer is None or not peer.is_open:
          raise OSError("it is gone")
        peer.send(command)
      except OSError as error:
        self._let_others_speak()
        raise JobBroken(f"{self.name}: rank {number} cannot be told anything ({error}); {self.last_lines()}") from error

  def begin(self, command: dict[str, Any]) -> None:
    """Tells all ranks; finish() has their answers."""
    for rank in self._ranks:
      rank.rows, rank.wrong, rank.replies, rank.events = {}, 0, [], []
    self._moved_s = time.monotonic()
    self.send(command)

  def finish(self, limit_s: float) -> list[dict[str, Any]]:
    self._until(lambda: all(rank.replies for rank in self._ranks), limit_s, "an answer")
    return [rank.replies.pop(0) for rank in self._ranks]

  def ask(self, command: dict[str, Any], limit_s: float) -> list[dict[str, Any]]:
    """One command; every rank's answer."""
    self.begin(command)
    return self.finish(limit_s)

  def stop_loop(self) -> list[dict[str, Any]]:
    self.send({"do": "stop"}, [0])
    return self.finish(STOP_S)

  def wait_event(self, name: str, limit_s: float) -> Any:
    """The value of rank 0's next event of that name."""
    found: list[Any] = []

    def came() -> bool:
      events = self._ranks[0].events
      while events:
        event = events.pop(0)
        if name in event:
          found.append(event[name])
          return True
      return False

    self._until(came, limit_s, f"waiting for '{name}'")
    return found[0]

  # A loop that runs.

  @property
  def rows(self) -> list[Row]:
    """Of the ranks that report any."""
    return figures.merge([rank.rows for rank in self._ranks if rank.rows])

  @property
  def wrong(self) -> int:
    return sum(rank.wrong for rank in self._ranks)

  def stay(self, seconds: float, may_stand_still: bool = False) -> tuple[int, int]:
    """Lets the loop run; begin and end of the window in ns."""
    begin_ns, deadline_s = monotonic_ns(), time.monotonic() + seconds
    while (left_s := deadline_s - time.monotonic()) > 0:
      self.look(min(TICK_S, left_s))
      if not may_stand_still:
        self.check_moving()
    return begin_ns, monotonic_ns()

  def check_moving(self) -> None:
    if time.monotonic() - self._moved_s > HANG_S:
      raise JobBroken(f"{self.name}: hangs, nothing completed for {HANG_S:g} s; {self.last_lines()}")

  def wait_rows(self, count: int, limit_s: float) -> None:
    """Until so many iterations more are done."""
    wanted = self.done_count() + count
    self._until(lambda: self.done_count() >= wanted, limit_s, f"{count} iterations")

  def done_count(self) -> int:
    return min((len(rank.rows) for rank in self._ranks if rank.rows), default=0)

  def pid(self, rank: int) -> int:
    return self._ranks[rank].process.pid

  def keep_to_processors(self, rank: int, processors: set[int]) -> None:
    """All threads that it has, and those that they start."""
    for thread in pathlib.Path(f"/proc/{self.pid(rank)}/task").glob("*"):
      with contextlib.suppress(ProcessLookupError):
        os.sched_setaffinity(int(thread.name), processors)

  def alive(self) -> list[int]:
    return [number for number, rank in enumerate(self._ranks) if rank.process.is_alive()]

  def logs(self, rank: int) -> str:
    return self._ranks[rank].process.output() + self._ranks[rank].process.errors()

  # The end.

  def quit(self) -> dict[str, Any]:
    """An orderly end; how long it took and whether all ranks ended well."""
    begin_s = time.monotonic()
    self.send({"do": "quit"})
    while time.monotonic() < begin_s + QUIT_S and self.alive():
      self.poll(TICK_S)
    codes = [rank.process.returncode for rank in self._ranks]
    self.kill()
    return {"exit_codes": codes, "exit_s": round(time.monotonic() - begin_s, 2)}

  def kill(self) -> None:
    """At once, and nothing of it is left."""
    for rank in self._ranks:
      rank.process.kill()
      if rank.peer is not None:
        rank.peer.close()
    for peer in self._waiting:
      peer.close()
    self._waiting = []
    self._listener.close()
    self._path.unlink(missing_ok=True)
