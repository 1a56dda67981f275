import dataclasses
import unittest

from testing.lab import layout
from testing.lab.lab import LabError, RailId

LAYOUT = layout.Layout(nodes=4, rails=4, fabric="rail", rate="500mbit", owner=4194304, serial=7)
FULL = dataclasses.replace(LAYOUT, fabric="full")


class Names(unittest.TestCase):

  def test_carry_their_owner(self):
    for name in LAYOUT.namespaces():
      self.assertEqual(layout.owner_pid(name), 4194304)

  def test_foreign_names_are_left_alone(self):
    for name in ("n0", "r2cc", "r2cc-12", "r2cc-12-0-x0", "cni-1234", "xr2cc-1-0-n0"):
      self.assertIsNone(layout.owner_pid(name), name)

  def test_names_of_two_labs_differ(self):
    other = dataclasses.replace(LAYOUT, serial=8)
    self.assertFalse(set(LAYOUT.namespaces()) & set(other.namespaces()))

  def test_names_of_interfaces_fit_the_kernel(self):
    largest = dataclasses.replace(LAYOUT, nodes=layout.NODES_MAX, rails=layout.RAILS_MAX)
    for node in range(largest.nodes):
      for rail in largest.rails_of(node):
        self.assertLessEqual(len(largest.port(rail)), 15)


class Commands(unittest.TestCase):

  def test_a_rail_fabric_keeps_rails_apart(self):
    masters = [line.split(" master ")[1].split()[0] for line in LAYOUT.fabric_commands() if " master " in line and "set p" in line]
    self.assertEqual(masters, ["rail0", "rail1", "rail2", "rail3"] * 4)

  def test_a_full_fabric_joins_them(self):
    masters = {line.split(" master ")[1].split()[0] for line in FULL.fabric_commands() if " master " in line and "set p" in line}
    self.assertEqual(masters, {"fabric"})

  def test_addresses_are_unique(self):
    addresses = [LAYOUT.rail_address(RailId(node, rail)) for node in range(4) for rail in range(4)]
    self.assertEqual(len(set(addresses)), 16)

  def test_a_full_fabric_sends_from_the_rail_that_is_meant(self):
    self.assertIn("rule add from 10.10.2.1 lookup 102", FULL.node_commands(0))
    self.assertTrue(any("table 102" in line for line in FULL.route_commands(RailId(0, 2))))

  def test_without_a_rate_nothing_is_shaped(self):
    self.assertEqual(LAYOUT.shape_commands("rail0", None), [])

  def test_a_fast_rail_has_a_bucket_of_half_a_millisecond(self):
    self.assertIn(" burst 256kb ", LAYOUT.shape_commands("rail0", "500mbit")[0])
    self.assertIn(" burst 488kb ", LAYOUT.shape_commands("rail0", "8gbit")[0])

  def test_without_a_rate_flows_are_spread_over_all_processors(self):
    unshaped = dataclasses.replace(LAYOUT, rate=None)
    for processors, mask in ((1, "00000001"), (2, "00000003"), (32, "ffffffff"), (33, "00000001,ffffffff"), (64, "ffffffff,ffffffff")):
      self.assertIn(f" echo {mask} > ", unshaped.steering_script(unshaped.namespaces()[0], processors))

  def test_with_a_rate_each_interface_has_a_processor(self):
    for processors in (1, 2, 32, 33):
      for namespace in LAYOUT.namespaces():
        masks = LAYOUT.steering_script(namespace, processors).split(";")[0].split()[2:]
        values = [int(mask.replace(",", ""), 16) for mask in masks]
        self.assertEqual(sorted(values), [1 << processor for processor in range(processors)])


class BadInput(unittest.TestCase):

  def test_a_rate_is_named_and_explained(self):
    for rate in ("500", "fast", "-1mbit", "0mbit", "500mbit;reboot", ""):
      with self.assertRaisesRegex(LabError, "500mbit"):
        layout.rate_bits_per_s(rate)
    self.assertEqual(layout.rate_bits_per_s("2.5gbit"), 2.5e9)

  def test_a_layout_has_limits(self):
    for change in ({"nodes": 0}, {"rails": 0}, {"nodes": 33}, {"rails": 17}, {"fabric": "ring"}, {"rate": "x"}):
      with self.assertRaises(LabError):
        dataclasses.replace(LAYOUT, **change)
