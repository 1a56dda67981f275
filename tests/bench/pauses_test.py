import unittest

from testing.lab.lab import LabError
from testing.lab.stalls import Window
from tests.bench import pauses


class Everywhere(unittest.TestCase):

  def test_is_when_no_processor_ran(self):
    paused = {0: [Window(10, 20), Window(40, 60)], 1: [Window(15, 30), Window(41, 45), Window(50, 70)]}
    self.assertEqual(pauses.everywhere(2, paused), [Window(15, 20), Window(41, 45), Window(50, 60)])

  def test_is_never_while_one_processor_runs(self):
    self.assertEqual(pauses.everywhere(2, {0: [Window(10, 20)]}), [])
    self.assertEqual(pauses.everywhere(2, {0: [Window(10, 20)], 1: [Window(20, 30)]}), [])

  def test_pauses_of_one_processor_are_its_own(self):
    self.assertEqual(pauses.everywhere(1, {0: [Window(10, 20), Window(30, 31)]}), [Window(10, 20), Window(30, 31)])


class Parse(unittest.TestCase):

  def test_leaves_out_a_torn_line(self):
    self.assertEqual(pauses.parse("2 processors\n0 5 9\n1 6 8\n0 20"), (2, {0: [Window(5, 9)], 1: [Window(6, 8)]}))

  def test_refuses_what_is_not_the_witness(self):
    with self.assertRaises(LabError):
      pauses.parse("hello\n")


class TheWitness(unittest.TestCase):

  def test_watches(self):
    lines: list[str] = []
    with pauses.Pauses(lines.append) as watch:
      windows = watch.windows()
    if lines:
      self.assertRegex(lines[0], "^the machine's own pauses are not known.*run it as root$")
      self.assertEqual((len(lines), windows), (1, []))
      self.skipTest(f"needs a real-time priority: {lines[0]}")
    self.assertTrue(all(window.begin_ns < window.end_ns for window in windows))
