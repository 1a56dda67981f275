"""A job that R2CC_RAILS does not name takes the NICs of its node's daemon, and no management interface."""

from tests.e2e.cluster_case import ClusterCase


class DaemonRails(ClusterCase):

  environment = {"R2CC_RAILS": ""}

  def test_the_rails_are_the_nics_of_the_daemon(self):
    nics = [f"rail{rail}" for rail in range(self.lab.rails)]
    for node in range(self.lab.nodes):
      job = self.cluster.ctl_json(node, "jobs")["jobs"][0]
      self.assertEqual([rail["nic"] for rail in job["rails"]], nics, "mgmt0 is an interface of the node as well")
      self.assertEqual(self.cluster.ctl_json(node, "status")["alarms"], [])
    self.expect_right_end()
