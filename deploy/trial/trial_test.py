import unittest

from deploy.trial import trial
from deploy.trial.network import Rail


class TrialTest(unittest.TestCase):

  def test_the_two_daemons_have_different_names(self):
    self.assertEqual(trial.node_names("a.example", "root@b"), ("a.example", "b"))
    self.assertEqual(trial.node_names("a", "a"), ("a-here", "a-there"))
    self.assertEqual(trial.node_names("a b", "fd00::1"), ("a-b", "fd00--1"))
    self.assertEqual(trial.node_names("", "@"), ("node-here", "node-there"))

  def test_the_configuration(self):
    rails = [Rail(0, "eth1", "ens5", "10.1.0.1", "10.1.0.2", False), Rail(1, "eth2", "ens6", "10.2.0.1", "10.2.0.2", False)]
    self.assertEqual(trial.config_text("b", "a", ("192.168.0.2", "192.168.0.1"), 17460, ["ens5", "ens6"], rails),
                     'node: "b"\nlisten: "192.168.0.2:17460"\npeers { node: "a" address: "192.168.0.1:17460" }\n'
                     'nics { name: "rail0" interface: "ens5" }\nnics { name: "rail1" interface: "ens6" }\n'
                     "insecure: true\ndrills { allow: true }\n")

  def test_machines_that_talk_by_ipv6(self):
    text = trial.config_text("b", "a", ("fd00::2", "fd00::1"), 17460, [], [])
    self.assertIn('listen: "[fd00::2]:17460"\npeers { node: "a" address: "[fd00::1]:17460" }\n', text)

  def test_bad_nics(self):
    nics = {"nodes": [{"node": "a", "nics": [{"name": "rail0", "state": "HEALTHY"}, {"name": "rail1", "state": "SUSPECT"}]},
                      {"node": "b", "nics": [{"name": "rail0", "state": "PROVING"}, {"name": "rail1", "state": "FAILED"}]}, {"node": "c"}]}
    self.assertEqual(trial.bad_nics(nics), [("a", "rail1", "SUSPECT"), ("b", "rail1", "FAILED")])
    self.assertEqual(trial.bad_nics({}), [])
