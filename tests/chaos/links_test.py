import unittest

from testing.lab.lab import RailId
from tests.chaos.links import LinkLayout, missing_link


def layout(links: str) -> LinkLayout:
  return LinkLayout(nodes=2, rails=2, fabric="rail", rate="100mbit", owner=1, serial=0, links=links)


class Links(unittest.TestCase):

  def test_a_veth_is_what_it_was(self):
    self.assertEqual(layout("veth").below(RailId(0, 1)), [])
    self.assertIsNone(missing_link("veth"))

  def test_a_bond_has_two_cables_and_the_first_has_the_ports_name(self):
    rail, bond = RailId(1, 0), layout("bond")
    cables = bond.cable_commands(rail)
    self.assertEqual([line.split()[2] for line in cables if line.startswith("link add")], [bond.port(rail), f"{bond.port(rail)}.1"])
    self.assertEqual([line.split()[line.split().index("name") + 1] for line in cables if " name " in line], bond.below(rail))
    commands = bond.rail_commands(rail)
    self.assertEqual([line for line in commands if "master" in line],
                     [f"link set {member} master rail0" for member in ("rail0.0", "rail0.1")])
    self.assertLess(commands.index("link set rail0.1 master rail0"), commands.index("link set rail0 up"))

  def test_a_vlan_has_the_same_number_at_both_ends(self):
    rail, vlan = RailId(0, 1), layout("vlan")
    tagged = [line for line in vlan.cable_commands(rail) + vlan.rail_commands(rail) if " type vlan " in line]
    self.assertEqual([line.split()[3] for line in tagged], [f"{vlan.port(rail)}.0", "rail1.0"])
    self.assertEqual(len({line.split()[-1] for line in tagged}), 1)

  def test_the_port_is_in_the_bridge(self):
    for links in ("veth", "bond", "vlan"):
      with self.subTest(links):
        one = layout(links)
        self.assertTrue(any(line.startswith(f"link set {one.port(RailId(0, 0))} master {one.bridge(0)}")
                            for line in one.cable_commands(RailId(0, 0))))
