"""A job of two ranks of r2cc-perf over RDMA rails, one in each of two guests."""

import pathlib
import shlex
from typing import Mapping

from testing.lab.binaries import built_binaries
from testing.lab.traces import Row, TraceFollower
from tests.rigs.two_guests.two_guests import TwoGuests

RAILS = 2
_STOP = "stop"
_SIZE = "256K"


def command(rank: int, size: str = _SIZE) -> list[str]:
  """Runs until the file `stop` lies in the folder that is shared with the host."""
  binaries = built_binaries()
  perf = [str(binaries.perf), "all_reduce", "--plugin", str(binaries.plugin), "-b", size, "--seconds", "3600", "--rank", str(rank),
          "--nranks", "2", "--root", "10.9.0.1:7500", "--timeout", "120", "--debug", "--json"]
  return ["bash", "-c", f"""
      out=$R2CC_GUEST_OUT
      unset R2CC_GUEST_OUT
      R2CC_NODE=n{rank} {shlex.join(perf)} --trace $out/trace &
      perf=$!
      while kill -0 $perf 2> /dev/null && [ ! -e $out/{_STOP} ]; do sleep 0.2; done
      kill -TERM $perf 2> /dev/null
      wait $perf"""]


class Ranks:
  """What the ranks have done so far. The rows of each have the clock of its own guest."""

  def __init__(self, pair: TwoGuests):
    self._pair = pair
    # A rank's file lies in its own guest's folder, under its own number.
    self._followers = [TraceFollower(machine.out / "trace", 2) for machine in pair.guests]

  def rows(self, rank: int) -> list[Row]:
    follower = self._followers[rank]
    follower.poll()
    return [row for row in follower.rows if row.kind in ("send", "recv")]

  def longest_wait_ms(self, rank: int, begin: int) -> float:
    """Of the completions of `rank` from number `begin` on."""
    return max((row.wait_ns for row in self.rows(rank)[begin:]), default=0) / 1e6

  def await_more(self, completions: int, timeout_s: float) -> bool:
    """So many more at each rank."""
    wanted = [len(self.rows(rank)) + completions for rank in (0, 1)]
    return self._pair.await_(lambda: all(len(self.rows(rank)) >= wanted[rank] for rank in (0, 1)), timeout_s)

  def stop(self) -> None:
    """After the iteration that it is in; both ranks end."""
    (self._pair.guests[0].out / _STOP).touch()


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
  return {"R2CC_TRANSPORT": "verbs", "R2CC_RAILS": ",".join(f"rail{rail}" for rail in range(RAILS)), "R2CC_OOB_IFNAME": "mgmt",
          "R2CC_ATTACH": "none", "R2CC_LOG": "debug"} | dict(extra or {})
