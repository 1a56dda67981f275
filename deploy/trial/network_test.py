import json
import unittest

from deploy.trial import network
from testing.lab.lab import LabError


def ports(**addresses: list[str]) -> dict[str, network.Port]:
  """By interface, as iproute2 says it."""
  return network.parse_ports(json.dumps([
      {"ifname": name, "flags": ["UP"], "addr_info": [
          {"family": "inet", "local": text.split("/")[0], "prefixlen": int(text.split("/")[1])} for text in texts] + [
              {"family": "inet6", "local": "fe80::1", "prefixlen": 64}]} for name, texts in addresses.items()]), "a")


class NetworkTest(unittest.TestCase):

  def pair(self, here: dict[str, network.Port], there: dict[str, network.Port]) -> list[network.Rail]:
    return network.pair_rails(here, there, [("eth1", "eth1"), ("eth2", "ens6")], ("a", "b"))

  def test_each_pair_by_the_network_that_it_shares(self):
    there = ports(eth1=["10.1.0.2/24"], ens6=["10.2.0.2/24"])
    rails = self.pair(ports(eth1=["192.168.9.1/24", "10.1.0.1/24"], eth2=["10.2.0.1/24"]), there)
    self.assertEqual([(rail.name, rail.here_address, rail.there_address, rail.temporary) for rail in rails],
                     [("rail0", "10.1.0.1", "10.1.0.2", False), ("rail1", "10.2.0.1", "10.2.0.2", False)])

  def test_ports_without_addresses_get_some(self):
    rails = self.pair(ports(eth1=[], eth2=["10.2.0.1/24"]), ports(eth1=[], ens6=["10.2.0.2/24"]))
    self.assertEqual((rails[0].here_address, rails[0].there_address, rails[0].temporary), ("198.18.0.1", "198.18.0.2", True))
    self.assertFalse(rails[1].temporary)
    both = self.pair(ports(eth1=[], eth2=[]), ports(eth1=[], ens6=[]))
    self.assertEqual([rail.here_address for rail in both], ["198.18.0.1", "198.18.1.1"])

  def test_ports_without_a_common_network_are_named(self):
    with self.assertRaisesRegex(LabError, r"eth1 of a \(10.1.0.1/24\) and eth1 of b \(no address\) are in no common IPv4 network"):
      self.pair(ports(eth1=["10.1.0.1/24"], eth2=[]), ports(eth1=[], ens6=[]))
    with self.assertRaisesRegex(LabError, "are in no common IPv4 network"):
      self.pair(ports(eth1=["10.1.0.1/24"], eth2=[]), ports(eth1=["10.1.0.1/24"], ens6=[]))  # one address at both ends
    with self.assertRaisesRegex(LabError, "a has no interface eth2; it has eth1"):
      self.pair(ports(eth1=["10.1.0.1/24"], lo=[]), ports(eth1=["10.1.0.2/24"]))
    down = {name: network.Port(name, False, ()) for name in ("eth1", "eth2")}
    with self.assertRaisesRegex(LabError, "eth1 of a is down: ip link set eth1 up"):
      self.pair(down, down)
    with self.assertRaisesRegex(LabError, "not what iproute2 prints"):
      network.parse_ports("BusyBox", "a")

  def test_warns_of_networks_that_spoil_the_trial(self):
    here = ports(eth1=["10.1.0.1/24"], eth2=["10.2.0.1/24"])
    rails = self.pair(here, ports(eth1=["10.1.0.2/24"], ens6=["10.2.0.2/24"]))
    self.assertEqual(network.warnings(here, rails, ("192.168.0.1", "192.168.0.2")), [])
    self.assertRegex(network.warnings(here, rails, ("10.2.0.1", "10.2.0.2"))[0], "^ssh goes by eth2: pull another cable")
    one_lan = ports(eth1=["10.1.0.1/24"], eth2=["10.1.0.3/24"])
    rails = self.pair(one_lan, ports(eth1=["10.1.0.2/24"], ens6=["10.1.0.4/24"]))
    self.assertRegex(network.warnings(one_lan, rails, ("192.168.0.1", "192.168.0.2"))[0],
                     r"^eth1 and eth2 are in one network \(10.1.0.0/24\).*arp_ignore=1")
