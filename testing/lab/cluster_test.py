"""Tests how the output of a job's ranks is read. //tests/e2e runs whole clusters."""

import types
import unittest

from testing.lab.cluster import Job, grants_text


class GrantsTest(unittest.TestCase):

  def test_the_user_of_the_lab_may_run_drills(self):
    self.assertEqual(grants_text(0), "", "the defaults are root's")
    self.assertIn('grants { roles: VIEW roles: OPERATE roles: DRILL users: "1001" }', grants_text(1001).splitlines())
    self.assertIn('grants { roles: VIEW everyone: true on_nodes: "*" }', grants_text(1001).splitlines())


class JobTest(unittest.TestCase):

  def test_lines_are_fresh_once(self):
    errors_of = ["early", ""]
    job = Job("job", [types.SimpleNamespace(errors=lambda rank=rank: errors_of[rank]) for rank in (0, 1)], follower=None)
    self.assertEqual(job.fresh_output(), "early")
    self.assertEqual(job.fresh_output(), "")
    errors_of[0] += " late"
    errors_of[1] += " both"
    self.assertEqual(job.fresh_output(), " late both")
