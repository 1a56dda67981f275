from testing.lab.lab import RailId
from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase


class DaemonCrash(ClusterCase):

  def test_a_daemon_that_dies_and_returns_disturbs_no_job(self):
    for node in (0, 2):  # n0 serves the store
      self.cluster.kill_daemon(node)
      self.expect_iterations(5)
      self.cluster.start_daemon(node)
      self.cluster.wait_ready(node)
      self.expect_attached(node)
      self.expect_iterations(2)
    self.expect_right_end()

  def test_all_daemons_dead_and_a_rail_lost(self):
    for node in range(4):
      self.cluster.kill_daemon(node)
    self.expect_iterations(2)
    self.lab.cut(RailId(3, 0))
    self.expect_iterations(5)
    self.lab.heal(RailId(3, 0))
    self.expect_right_end()

  def test_a_restarted_daemon_is_obeyed(self):
    self.cluster.kill_daemon(0)
    self.cluster.start_daemon(0)
    self.cluster.wait_ready(0)
    self.expect_attached(0)
    self.cluster.ctl(0, "nic", "drain", "n0/rail1")
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail1"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()

  def test_the_operators_setting_is_kept_over_a_restart(self):
    self.cluster.ctl(0, "nic", "drain", "n0/rail1")
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail1"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.cluster.kill_daemon(0)
    self.cluster.start_daemon(0)
    self.cluster.wait_ready(0)
    self.expect_attached(0)
    self.assertTrue(wait_until(lambda: self.shares_sent(0)["rail1"] < 0.02, PATIENCE_S), self.shares_sent(0))
    self.expect_right_end()

  def test_a_daemon_that_is_stopped_disturbs_no_job(self):
    self.cluster.daemon(1).pause()
    self.expect_iterations(10)
    self.cluster.daemon(1).resume()
    self.expect_iterations(2)
    self.expect_right_end()
