"""A job between two nodes whose rails stall, and how long it waits for it."""

import time

from testing.lab import stalls
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, Job, JobOptions
from testing.lab.lab import RailId, monotonic_ns
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase, expect_iterations

SILENCE_MS = 250
# R2CC_SILENCE_MS, and what the retransmission timeout of Linux, samples and ticks add.
STALL_MOST_MS = SILENCE_MS + 100
# On a machine that does other work a tick may be late.
BUSY_MS = 150
LARGE = "meta length > 1500"


class StalledCase(NamespaceCase):
  """Two nodes of three rails. Without r2ccd the plugin finds everything itself."""

  daemons = False

  def setUp(self) -> None:
    super().setUp()
    self.jobs = 0
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=3, rate="500mbit"))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.enterContext(Processes(self.folder)),
                           daemons=self.daemons)

  def start(self, *flags: str, size: str = "4M", collective: str = "all_reduce", **environment: str) -> Job:
    options = JobOptions(size=size, collective=collective, seconds_max=600, environment={"R2CC_LOG": "info"} | environment, flags=flags)
    self.jobs += 1
    self.job = self.cluster.start_job(f"job{self.jobs}", options)
    expect_iterations(self, self.job, 20)
    return self.job

  def swallow_busiest(self, rail: int) -> int:
    """What the connection of `rail` from n1 sends that has sent the most is lost from now on; since when."""
    busiest = self.lab.connections(RailId(1, rail))[0]
    return self.lab.lose(RailId(0, rail), f"tcp sport {busiest.local_port} tcp dport {busiest.peer_port}")

  def expect_stall_within(self, fault_ns: int, most_ms: float = STALL_MOST_MS + BUSY_MS) -> float:
    """How long a flow waited after the fault."""
    time.sleep(2)
    self.job.follower.poll()
    window = stalls.Window(fault_ns, monotonic_ns())
    rows = self.job.follower.rows
    if any(row.kind == "recv" for row in rows):
      stall_ms, last_ns = stalls.longest_wait_ns(rows, window) / 1e6, stalls.last_completion_ns(rows) or 0
    else:  # CollNet's requests are whole operations
      ended = [row for row in rows if row.kind == "iteration" and row.time_ns > fault_ns]
      stall_ms, last_ns = max((row.wait_ns for row in ended), default=0) / 1e6, max((row.time_ns for row in ended), default=0)
    self.assertGreater(last_ns, fault_ns + 1e9, f"nothing completes: {self.log_text()}")
    print(f"{self.id().rpartition('.')[2]}: stall {stall_ms:.0f} ms")
    self.assertLess(stall_ms, most_ms, self.log_text())
    return stall_ms

  def log_text(self) -> str:
    return "".join(rank.errors()[-2000:] for rank in self.job.ranks)

  def expect_log(self, text: str) -> None:
    self.assertTrue(wait_until(lambda: text in self.log_text(), 5, 0.1), f"nobody says '{text}': {self.log_text()}")

  def expect_right_end(self) -> None:
    self.job.ask_to_stop()
    self.assertTrue(self.job.wait(PATIENCE_S), "the job did not stop")
    self.assertEqual(self.job.failures(), [])
    report = self.job.report()
    self.assertEqual((report["wrong_elements"], report["late_writes"], report["pass"]), (0, 0, True))

  def expect_back(self, rail: RailId) -> None:
    """Data travels on the rail again."""
    before = self.lab.counters(rail.node)[f"rail{rail.rail}"].sent_bytes
    sent = lambda: self.lab.counters(rail.node)[f"rail{rail.rail}"].sent_bytes - before
    self.assertTrue(wait_until(lambda: sent() > 8 << 20, PATIENCE_S, 0.1), f"{rail} carries nothing: {self.log_text()}")
