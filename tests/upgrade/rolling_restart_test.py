"""All daemons of a cluster are started anew in turn under a running all_reduce, as another release and back: no job notices.

Without an argument the other release is this one: then it is a restart of each. Otherwise the argument is a folder with the programs of
the last release, as its bazel-bin has them, and plugins of both releases take part.
"""

import dataclasses
import os
import pathlib
import signal
import tempfile
import time
import unittest

from bazel import unittest_main
from testing.lab import namespaces
from testing.lab import stalls
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Binaries, Cluster, Job, JobOptions
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import keep_test_logs

# Generous: these waits end as soon as what they wait for is there.
PATIENCE_S = 60
# What a restart may add to the longest wait of a flow where the machine is the job's alone.
STALL_MAX_MS = 50
# On a machine that does other things, a rank waits for a processor as long as that.
BUSY_STALL_MAX_MS = 1000
# Undisturbed before each restart, and watched after it.
STEADY_S = stalls.STALL_WINDOW_NS / 1e9 + 0.5


def _other_release() -> Binaries | None:
  """The binaries below the folder that was named; None: none was."""
  arguments = unittest_main.test_args()
  if not arguments:
    return None
  root = pathlib.Path(arguments[0])
  if not root.is_dir():
    raise unittest.SkipTest(f"needs last_release: {root}, which tests/upgrade/build_last_release.sh makes")
  other = Binaries(daemon=root / "daemon/r2ccd", ctl=built_binaries().ctl, perf=built_binaries().perf,
                   plugin=root / "netplugin/libnccl-net-r2cc.so")
  other.check()
  return other


class RollingRestart(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")
    namespaces.sweep()
    cls.other = _other_release()
    cls.stall_max_ms = STALL_MAX_MS if os.environ.get("R2CC_IDLE_MACHINE") == "1" else BUSY_STALL_MAX_MS

  def setUp(self):
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-roll-", dir="/tmp")))
    self.addCleanup(keep_test_logs, self.folder, self.id())
    self.new = built_binaries()
    self.old = self.other or self.new
    self.lab = self.enterContext(NamespaceLab(rate="500mbit"))
    self.processes = self.enterContext(Processes(self.folder))
    # The newest r2ccctl asks the daemons of both.
    self.cluster = Cluster(self.lab, self.old, self.folder, self.processes)
    self.cluster.start_daemons()
    self.stalls: list[float] = []
    self.undisturbed: list[float] = []

  def start(self, plugins: tuple[pathlib.Path, ...]) -> Job:
    options = JobOptions(size="4M", seconds_max=600, environment={"R2CC_LOG": "info"}, flags=("--debug",), plugins=plugins)
    job = self.cluster.start_job("job", options)
    for node in range(self.lab.nodes):
      self.expect_attached(node)
    return job

  def expect_attached(self, node: int) -> None:
    self.assertTrue(wait_until(lambda: self.cluster.attached_processes(node) == 1, PATIENCE_S, 0.1), f"the job on n{node} is not attached")

  def restart(self, job: Job, node: int, release: Binaries) -> None:
    """The daemon of `node` ends and is `release`'s then; the job is watched meanwhile."""
    healthy_ns = time.monotonic_ns()
    time.sleep(STEADY_S)
    # As if something had been done here: what the machine's other work adds.
    control_ns = time.monotonic_ns()
    time.sleep(STEADY_S)
    begun_ns = time.monotonic_ns()
    daemon = self.cluster.daemon(node)
    daemon.send(signal.SIGTERM)
    self.assertEqual(daemon.wait(PATIENCE_S), 0, daemon.last_lines())
    self.cluster.binaries = dataclasses.replace(self.cluster.binaries, daemon=release.daemon)
    self.cluster.start_daemon(node)
    self.cluster.wait_ready(node)
    self.expect_attached(node)
    back_ms = (time.monotonic_ns() - begun_ns) / 1e6
    time.sleep(max(0.0, STEADY_S - back_ms / 1e3))
    dead = job.dead_rank()
    if dead is not None:
      self.fail(f"rank {dead} ended: {job.ranks[dead].last_lines()}")
    job.follower.poll()
    healthy = stalls.Window(healthy_ns, control_ns)
    stall_ms = stalls.stall_ms(job.follower.rows, begun_ns, healthy, time.monotonic_ns())
    undisturbed_ms = stalls.stall_ms(job.follower.rows, control_ns, healthy, begun_ns)
    self.stalls.append(stall_ms)
    self.undisturbed.append(undisturbed_ms)
    print(f"n{node}: {back_ms:.0f} ms until its daemon has met all peers and the job is attached again; stall {stall_ms:.1f} ms, before "
          f"that, undisturbed, {undisturbed_ms:.1f} ms", flush=True)

  def fences(self, job: Job) -> list[str]:
    """What the ranks say that they gave up."""
    for rank in job.ranks:
      self.assertIn("attached to r2ccd", rank.errors(), "without such lines nothing would be found")
    return [line for rank in job.ranks for line in rank.errors().splitlines() if " given up (" in line]

  def roll(self, plugins: tuple[pathlib.Path, ...]) -> None:
    """To the new release, node by node, and back."""
    self.cluster.ctl(0, "nic", "drain", "n0/rail1")
    job = self.start(plugins)
    for release in (self.new, self.old):
      for node in range(self.lab.nodes):
        self.restart(job, node, release)
        self.assertEqual(self.fences(job), [])
        nics = self.cluster.ctl_json(0, "nic", "list", "--node", "n0")["nodes"][0]["nics"]
        self.assertEqual([nic["name"] for nic in nics if nic.get("drained")], ["rail1"], "the operator's word is kept")
        if self.other is not None and release is self.new:
          self.expect_releases(1 if node + 1 == self.lab.nodes else 2)
    job.ask_to_stop()
    self.assertTrue(job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(job.failures(), [])
    report = job.report()
    self.assertEqual((report["wrong_elements"], report["late_writes"], report["pass"]), (0, 0, True))
    self.assertEqual(self.fences(job), [])
    print(f"{len(self.stalls)} restarts: longest stall {max(self.stalls):.1f} ms, undisturbed {max(self.undisturbed):.1f} ms; "
          "0 wrong, nothing fenced", flush=True)
    self.assertLessEqual(max(self.stalls), self.stall_max_ms, self.stalls)

  def expect_releases(self, count: int) -> None:
    """So many are in the status of node 0, whose daemon is of the new release."""
    seen = lambda: self.cluster.ctl_json(0, "status")["summary"].get("releases", [])
    self.assertTrue(wait_until(lambda: len(seen()) == count, PATIENCE_S, 0.1), seen())

  def test_the_plugins_are_of_the_old_release(self):
    self.roll((self.old.plugin,) * self.lab.nodes)

  def test_the_plugins_are_of_the_new_release(self):
    if self.other is None:
      self.skipTest("the other release is this one: that is the same as the other case")
    self.roll((self.new.plugin,) * self.lab.nodes)

  def test_the_plugins_are_of_both_releases(self):
    if self.other is None:
      self.skipTest("the other release is this one: that is the same as the other case")
    self.roll(tuple((self.old, self.new)[node % 2].plugin for node in range(self.lab.nodes)))
