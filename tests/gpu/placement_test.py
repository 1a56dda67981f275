import unittest

from tests.gpu import placement
from tests.gpu.placement import Placement


class PlacementTest(unittest.TestCase):

  def test_nodes_share_cards_in_turn(self):
    eight = Placement(nodes=8, gpus=4)
    self.assertEqual([eight.gpu(rank) for rank in range(8)], [0, 1, 2, 3, 0, 1, 2, 3])
    self.assertEqual([eight.node(rank) for rank in range(8)], list(range(8)))

  def test_ranks_of_one_node_have_cards_of_their_own(self):
    for gpus in (2, 4):
      pair = Placement(nodes=2, gpus=gpus, per_node=2)
      for node in range(2):
        cards = [pair.gpu(rank) for rank in range(4) if pair.node(rank) == node]
        self.assertEqual(len(set(cards)), 2)
    with self.assertRaisesRegex(ValueError, "need as many GPUs"):
      Placement(nodes=2, gpus=1, per_node=2)


class ProcessorsTest(unittest.TestCase):

  def test_nodes_share_no_core_and_another_deal_gives_others(self):
    cores = [(core, core + 6) for core in range(6)]
    seen = set()
    for deal in range(20):
      first, second = placement.dealt_processors(cores, 2, deal)
      self.assertEqual(first | second, set(range(12)))
      self.assertEqual({processor % 6 for processor in first} & {processor % 6 for processor in second}, set())
      seen.add(frozenset(first))
    self.assertGreater(len(seen), 5)
    self.assertEqual([len(node) for node in placement.dealt_processors(cores, 4, 0)], [2, 2, 2, 2])
    self.assertEqual(placement.dealt_processors(cores, 2, 3), placement.dealt_processors(cores, 2, 3))

  def test_too_few_are_named(self):
    with self.assertRaisesRegex(ValueError, "4 nodes want a core each, and there are 2"):
      placement.dealt_processors([(0,), (1,)], 4, 0)


class EnvironmentTest(unittest.TestCase):

  def of(self, network, per_node=1, rank=1):
    return placement.rank_environment(network, Placement(2, 2, per_node), rank, "rail0,rail1", "mgmt0")

  def test_multicast_is_off_whatever_the_network(self):
    for network in (placement.R2CC, placement.SOCKET):
      result = self.of(network)
      self.assertEqual((result["NCCL_NVLS_ENABLE"], result["NCCL_MNNVL_ENABLE"]), ("0", "0"))
      self.assertTrue(all(isinstance(value, str) for value in result.values()))

  def test_sockets_control_has_no_plugin(self):
    result = self.of(placement.Network("socket", 2, 4))
    self.assertEqual(result["NCCL_NET_PLUGIN"], "none")
    self.assertEqual((result["NCCL_NSOCKS_PERTHREAD"], result["NCCL_SOCKET_NTHREADS"]), ("2", "4"))
    self.assertNotIn("NCCL_NSOCKS_PERTHREAD", self.of(placement.SOCKET))
    self.assertFalse([name for name in result if name.startswith("R2CC_")])

  def test_ours_keeps_the_bootstrap_off_the_rails(self):
    result = self.of(placement.R2CC)
    self.assertEqual((result["NCCL_NET"], result["NCCL_NET_PLUGIN"], result["NCCL_SOCKET_IFNAME"]), ("R2CC", "r2cc", "=mgmt0"))
    self.assertEqual((result["R2CC_NODE"], result["NCCL_HOSTID"]), ("n1", "node1"))

  def test_peer_to_peer_is_left_on_inside_a_node(self):
    self.assertIn("NCCL_P2P_DISABLE", self.of(placement.R2CC))
    self.assertNotIn("NCCL_P2P_DISABLE", self.of(placement.R2CC, per_node=2))
    self.assertEqual(self.of(placement.R2CC, per_node=2, rank=2)["NCCL_HOSTID"], "node1")
