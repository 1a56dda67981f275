import unittest

from tests.gpu import case_seat


class SeatTest(unittest.TestCase):

  def test_nodes_that_are_asked_for_replace_the_worlds(self):
    self.assertEqual([nodes for nodes, _ in case_seat.worlds(None)], [4, 4, 8])
    self.assertEqual([nodes for nodes, _ in case_seat.worlds(5)], [5])

  def test_two_nodes_decline_and_others_find_a_seat(self):
    half = {nodes: case_seat.losses(nodes, 4, quick=False)[0][2] for nodes in (2, 3, 4, 5, 7, 8)}
    self.assertEqual(half, {2: False, 3: True, 4: True, 5: True, 7: True, 8: True})
    quarter = {nodes: case_seat.losses(nodes, 4, quick=False)[1][2] for nodes in (2, 3, 4, 5, 6, 7, 8)}
    self.assertEqual(quarter, {2: False, 3: True, 4: False, 5: False, 6: True, 7: True, 8: True})

  def test_a_ring_through_more_ranks_makes_a_quarter_worth_a_seat(self):
    self.assertEqual([expected for _, _, expected in case_seat.losses(4, 4, quick=False, per_node=2)], [True, True])

  def test_rails_that_are_lost_are_there(self):
    for nodes in case_seat.OTHER_COUNTS:
      for _, lost, _ in case_seat.losses(nodes, 4, quick=False):
        self.assertTrue(all(rail.node < nodes and rail.rail < 4 for rail in lost))
