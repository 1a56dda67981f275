import unittest

from tests.gpu import case_training


class TrainingTest(unittest.TestCase):

  def test_nodes_that_share_a_gpu_share_its_memory(self):
    for world, gpus, most in ((4, 4, 80), (4, 2, 40), (4, 1, 20), (8, 4, 40), (6, 4, 40)):
      with self.subTest(world=world, gpus=gpus):
        tried = case_training.candidates(world, gpus)
        self.assertEqual(max(sequences for sequences, _ in tried), most)
        tokens = [sequences * batches for sequences, batches in tried]
        self.assertEqual(tokens, sorted(set(tokens)))  # each is more work between two sums
