"""What a job's ranks say. Whole clusters are driven by //tests/e2e."""

import types
import unittest

from deploy.drill.rig.cluster import Job


class JobTest(unittest.TestCase):

  def test_words_are_fresh_once(self):
    said = ["early", ""]
    job = Job("job", [types.SimpleNamespace(errors=lambda rank=rank: said[rank]) for rank in (0, 1)], follower=None)
    self.assertEqual(job.fresh_words(), "early")
    self.assertEqual(job.fresh_words(), "")
    said[0] += " late"
    said[1] += " both"
    self.assertEqual(job.fresh_words(), " late both")
