"""Tests names and commands of the lab in a guest; //tests/e2e:drill_verbs_test runs them there."""

import unittest

from testing.guest import verbs_lab
from testing.lab.lab import LabError, RailId


class VerbsLabTest(unittest.TestCase):

  def lab(self, rails: int) -> verbs_lab.VerbsLab:
    made = verbs_lab.VerbsLab(rails)
    self.addCleanup(made.__exit__, None, None, None)
    return made

  def test_names_are_those_of_rails_sh(self):
    far = RailId(1, 2)
    self.assertEqual((verbs_lab.interface(far), verbs_lab.port(far), verbs_lab.bridge(far), verbs_lab.address(far)),
                     ("v2b", "p2b", "bridge2", "10.0.2.2"))
    self.assertEqual(self.lab(2).rails_variable(0), "v0a,v1a")

  def test_each_end_knows_the_other(self):
    commands = verbs_lab.neighbour_commands(2, lambda rail: f"mac-of-{verbs_lab.interface(rail)}")
    self.assertEqual(len(commands), 4)
    self.assertEqual(commands[0], "neigh replace 10.0.0.2 lladdr mac-of-v0b dev v0a nud permanent")
    self.assertEqual(commands[3], "neigh replace 10.0.1.1 lladdr mac-of-v1a dev v1b nud permanent")

  def test_outside_of_a_guest_it_names_what_is_missing(self):
    for use in (lambda lab: lab.counters(0), lambda lab: lab.cut(RailId(0, 0)), lambda lab: lab.blackhole(RailId(0, 0))):
      with self.assertRaisesRegex(LabError, "v0a|p0a"):
        use(self.lab(1))
