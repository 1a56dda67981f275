"""What `r2ccctl nic drain` takes away from a real job: a whole rail, one NIC until nothing travels there, one job of two. By bytes."""

import collections
import re
import subprocess
import time

from testing.lab.cluster import Job, JobOptions
from testing.lab.lab import RailId
from testing.lab.processes import ManagedProcess, wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase

# Probes of 9,000 bytes take most of what is no data: three peers' pairs are asked each 0.3 s and ask back, 180 KB/s of a rail. A job that
# moves data sends tens of MB/s.
_NOISE_BYTES_PER_S = 500_000
# A job tells about once a second what it moved, and `--wait` wants three reports without a byte.
_QUIET_S = 3.0
_LOOK_S = 0.1
# One line of `ss`: the own address, whose socket it is, what was sent.
_SOCKET = re.compile(r'^\S+ +\d+ +\d+ +(\S+?)(?:%\S+)?:\d+ .*pid=(\d+),fd=(\d+).*bytes_sent:(\d+)')


class DrainCase(ClusterCase):

  def start_drain(self, *arguments: str) -> ManagedProcess:
    argv = [str(self.cluster.binaries.ctl), "--run_dir", str(self.cluster.run_dir(0)), "nic", "drain", *arguments]
    return self.processes.start("drain", argv)

  def sent_bytes(self, rail: str) -> int:
    return self.lab.counters(0)[rail].sent_bytes

  def last_busy_s(self, rail: str, drain: ManagedProcess, until_s: float) -> float:
    """Watches n0's `rail` until `drain` has ended, or until `until_s`; when it last carried more than noise (CLOCK_MONOTONIC)."""
    busy_s = before_s = time.monotonic()
    before = self.sent_bytes(rail)
    while drain.is_alive() and before_s < until_s:
      time.sleep(_LOOK_S)
      sent, now_s = self.sent_bytes(rail), time.monotonic()
      if sent - before > _NOISE_BYTES_PER_S * (now_s - before_s):
        busy_s = now_s
      before, before_s = sent, now_s
    return busy_s

  def expect_unused(self, rail: str, node: int = 0) -> None:
    self.assertTrue(wait_until(lambda: self.share(node, rail) < 0.02, PATIENCE_S), f"n{node}: {self.shares_sent(node)}")

  def expect_used(self, rail: str, node: int = 0) -> None:
    self.assertTrue(wait_until(lambda: self.share(node, rail) > 0.1, PATIENCE_S), f"n{node}: {self.shares_sent(node)}")

  def share(self, node: int, rail: str) -> float:
    return self.shares_sent(node, seconds=1)[rail]


class Drain(DrainCase):
  """Two jobs may run; the first is called train."""

  environment = {"R2CC_JOB": "train"}

  def test_a_whole_rail(self):
    output = self.cluster.ctl(1, "nic", "drain", "rail2/*")
    self.assertEqual(len(output.splitlines()), self.lab.nodes, output)
    for node in range(self.lab.nodes):
      self.expect_unused("rail2", node)
      self.assertIn(f"n{node}/rail2", output)
    self.expect_iterations(3)
    self.cluster.ctl(2, "nic", "undrain", "rail2/*")
    for node in range(self.lab.nodes):
      self.expect_used("rail2", node)
    self.expect_right_end()

  def test_the_nodes_of_a_leaf_keep_their_last_nic(self):
    drain = self.start_drain("n3/*")
    self.assertEqual(drain.wait(PATIENCE_S), 1)
    self.assertIn("1 of 4 NICs were refused", drain.errors())
    self.assertIn("n3/rail3 is the last NIC", drain.errors())
    for rail in ("rail0", "rail1", "rail2"):
      self.expect_unused(rail, 3)
    self.expect_used("rail3", 3)
    self.expect_used("rail0", 1)
    self.expect_iterations(3)
    self.cluster.ctl(0, "nic", "undrain", "n3/*")
    for rail in ("rail0", "rail1", "rail2"):
      self.expect_used(rail, 3)
    self.expect_right_end()

  def test_wait_returns_once_nothing_travels(self):
    self.expect_used("rail1")
    drain = self.start_drain("n0/rail1", "--wait")
    busy_s = self.last_busy_s("rail1", drain, time.monotonic() + PATIENCE_S)
    ended_s = time.monotonic()
    self.assertEqual(drain.wait(0), 0, drain.last_lines())
    self.assertIn("nothing travels there any more", drain.output())
    # The last report with bytes in it may be a second younger than they are.
    self.assertGreater(ended_s - busy_s, _QUIET_S - 1)
    before, before_s = self.sent_bytes("rail1"), time.monotonic()
    self.expect_iterations(3)
    self.assertLess(self.sent_bytes("rail1") - before, _NOISE_BYTES_PER_S * (time.monotonic() - before_s))
    self.expect_right_end()

  def test_for_one_job_alone(self):
    other = self.cluster.start_job("other", JobOptions(size="16M", seconds_max=600, environment={"R2CC_JOB": "other"}))
    self.assertTrue(wait_until(lambda: self.cluster.attached_processes(0) == 2, PATIENCE_S, 0.1), "the other job is not attached")
    shares = lambda: self.shares_of_jobs([self.job, other], "rail1")
    moves = lambda name: wait_until(lambda: shares()[name] > 0.1, PATIENCE_S)
    for job in ("job", "other"):
      self.assertTrue(moves(job), shares())
    drain = self.start_drain("n0/rail1", "--job", "train", "--wait")
    self.assertEqual(drain.wait(PATIENCE_S), 0, drain.last_lines())
    for _ in range(3):
      seen = shares()
      self.assertLess(seen["job"], 0.02, seen)
      self.assertGreater(seen["other"], 0.1, seen)
    self.cluster.ctl(0, "nic", "undrain", "n0/rail1", "--job", "train")
    self.assertTrue(moves("job"), shares())
    other.ask_to_stop()
    self.assertTrue(other.wait(PATIENCE_S), "the other job did not stop")
    self.assertEqual(other.failures(), [])
    self.expect_right_end()

  def shares_of_jobs(self, jobs: list[Job], rail: str, seconds: float = 2.0) -> dict[str, float]:
    """Which part of the bytes that each job's rank of n0 sends in the next `seconds` leaves by `rail`, by the kernel's count of each
    socket."""
    before = [self.socket_bytes(job) for job in jobs]
    time.sleep(seconds)
    shares = {}
    for job, earlier in zip(jobs, before):
      moved: dict[str, int] = collections.defaultdict(int)
      for (address, descriptor), count in self.socket_bytes(job).items():
        # A socket that came and took another's number has sent less than that.
        moved[address] += max(0, count - earlier.get((address, descriptor), 0))
      sent = [moved[self.lab.rail_address(RailId(0, number))] for number in range(self.lab.rails)]
      self.assertGreater(sum(sent), 0, f"{job.name} moved nothing: {dict(moved)}")
      shares[job.name] = sent[int(rail.removeprefix("rail"))] / sum(sent)
    return shares

  def socket_bytes(self, job: Job) -> dict[tuple[str, str], int]:
    """Of the rank of n0: what each of its connections has sent, by the address that it leaves from and its descriptor."""
    done = subprocess.run(self.lab.command(0, ["ss", "-tinpHO"]), capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    found = [match.groups() for match in map(_SOCKET.match, done.stdout.splitlines()) if match]
    return {(address, descriptor): int(count) for address, pid, descriptor, count in found if int(pid) == job.ranks[0].pid}


class DrainWithoutAnotherWay(DrainCase):
  """Flows of mode 0 stay on their rail whatever is said."""

  environment = {"R2CC_MODE": "0"}

  def test_wait_does_not_return_while_a_job_goes_on_there(self):
    self.expect_used("rail1")
    drain = self.start_drain("n0/rail1", "--wait")
    # Much longer than what it calls quiet.
    self.last_busy_s("rail1", drain, time.monotonic() + 4 * _QUIET_S)
    self.assertTrue(drain.is_alive(), f"it returned while the job was there: {drain.output()} {drain.last_lines()}")
    self.expect_used("rail1")
    self.expect_right_end()
    self.assertEqual(drain.wait(PATIENCE_S), 0, drain.last_lines())
    self.assertIn("nothing travels there any more", drain.output())
