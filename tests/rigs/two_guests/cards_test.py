"""The cables and cards of two guests, before they are."""

import unittest

from tests.rigs.two_guests import two_guests


class Cards(unittest.TestCase):

  def test_a_cable_carries_both_ways(self):
    one, other = two_guests.cable()
    with one, other:
      one.send(b"to")
      other.send(b"fro")
      self.assertEqual((other.recv(9), one.recv(9)), (b"to", b"fro"))
      self.assertTrue(one.get_inheritable() and other.get_inheritable())

  def test_a_card_has_the_address_that_cards_sh_expects(self):
    words = two_guests.card_arguments(2, node=1, descriptor=7)
    self.assertEqual(words[1], "dgram,id=cable2,local.type=fd,local.str=7")
    self.assertIn("mac=52:54:00:00:02:01", words[3])
    self.assertIn("id=card2,netdev=cable2", words[3])
