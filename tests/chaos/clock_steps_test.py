"""A node whose clock is set back by an hour still keeps its deadlines: a daemon that waits for a peer is not stopped for an hour."""

import datetime
import pathlib
import subprocess
import tempfile
import unittest

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.lab import LabError
from testing.lab.processes import Processes, clean_environment
from tests.chaos.script import Shape
from tests.chaos.world import ChaosCluster, ChaosLab

HOUR_S = 3600


class ClockSteps(unittest.TestCase):

  def setUp(self) -> None:
    if (reason := namespaces.missing_feature()) is not None:
      self.skipTest(f"needs root: {reason}")
    namespaces.sweep()
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-clock-", dir="/tmp")))
    self.lab = self.enterContext(ChaosLab(Shape(nodes=2, rails=2), "200mbit", self.folder))

  def hour(self, node: int) -> datetime.datetime:
    """What a process of the node takes for the time of day."""
    done = subprocess.run(self.lab.command(node, ["date", "+%s"]), capture_output=True, text=True, check=True, env=clean_environment({}))
    return datetime.datetime.fromtimestamp(int(done.stdout))

  def test_each_node_has_a_clock_of_its_own(self):
    self.lab.step_clock(0, -HOUR_S)
    self.assertAlmostEqual((self.hour(1) - self.hour(0)).total_seconds(), HOUR_S, delta=30)
    self.lab.step_clock(0, 0)
    self.assertAlmostEqual((self.hour(1) - self.hour(0)).total_seconds(), 0, delta=30)

  # A wait that has begun lasts longer for it, as in a kernel whose clock is set back. So the test below can see what it looks for.
  def test_a_wait_until_a_time_of_day_lasts_longer(self):
    program = ("import ctypes, time, sys\n"
               "class T(ctypes.Structure): _fields_ = [('s', ctypes.c_long), ('ns', ctypes.c_long)]\n"
               "c = ctypes.CDLL(None, use_errno=True); semaphore = ctypes.create_string_buffer(32); c.sem_init(semaphore, 0, 0)\n"
               "until = T(int(time.time()) + 2, 0); begin = time.monotonic(); print('waits', flush=True)\n"
               "c.sem_timedwait(semaphore, ctypes.byref(until)); print(time.monotonic() - begin)\n")
    waits = subprocess.Popen(self.lab.command(0, ["python3", "-c", program]), stdout=subprocess.PIPE, text=True, env=clean_environment({}))
    self.addCleanup(waits.wait)
    self.addCleanup(waits.kill)
    assert waits.stdout is not None
    self.assertEqual(waits.stdout.readline(), "waits\n")
    self.lab.step_clock(0, -4)
    self.assertGreater(float(waits.stdout.readline()), 4)

  def test_a_daemon_whose_clock_is_set_back_keeps_its_deadlines(self):
    processes = self.enterContext(Processes(self.folder))
    cluster = ChaosCluster(self.lab, built_binaries(), self.folder, processes, etcd=False)
    cluster.start_daemons()
    cluster.daemon(1).pause()
    self.addCleanup(cluster.daemon(1).resume)
    self.lab.step_clock(0, -HOUR_S)
    # r2ccctl waits for 10 s, and r2ccd for fewer.
    with self.assertRaisesRegex(LabError, "n1 .* cannot be reached: it does not answer any more"):
      cluster.ctl(0, "nic", "drain", "n1/rail0")
