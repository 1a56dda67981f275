import unittest

from deploy.drill import story
from deploy.drill.story import Action


def every_story():
  for pace in (story.FULL, story.QUICK):
    for daemons, loopback in ((True, False), (True, True), (False, False)):
      yield story.story_steps(pace, daemons, loopback), daemons
    yield story.verbs_story_steps(pace), False


class StoryTest(unittest.TestCase):

  def test_a_fault_is_followed_by_a_phase_as_long_as_its_measurement(self):
    for steps, _ in every_story():
      running = False
      for step, after in zip(steps, steps[1:]):
        running = step.action is Action.START_JOB or running and step.action is not Action.STOP_JOB
        if running and step.action in (Action.CUT, Action.SILENCE, Action.FAIL_NIC):
          self.assertIs(after.action, Action.STAY)
          self.assertGreater(after.seconds, 2.0)

  def test_all_that_breaks_is_repaired(self):
    for steps, _ in every_story():
      broken = set()
      for step in steps:
        if step.action in (Action.CUT, Action.SILENCE, Action.FAIL_NIC):
          self.assertNotIn(step.rail, broken)
          broken.add(step.rail)
        if step.action in (Action.HEAL, Action.END_SILENCE, Action.RESTORE_NIC):
          broken.remove(step.rail)
      self.assertFalse(broken)

  def test_steps_ask_a_daemon_only_if_there_is_one(self):
    for steps, daemons in every_story():
      asks = any(step.action in (Action.FAIL_NIC, Action.RESTORE_NIC, Action.KILL_DAEMON, Action.START_DAEMON) for step in steps)
      self.assertEqual(asks, daemons)

  def test_every_figure_has_its_phase(self):
    for steps, _ in every_story():
      phases = [step.phase for step in steps if step.action is Action.STAY]
      self.assertEqual(len(phases), len(set(phases)))
      self.assertTrue({story.HEALTHY, story.DEGRADED, story.RESTORED} <= set(phases))

  def test_fits_into_its_time(self):
    for steps, _ in every_story():
      self.assertLess(sum(step.seconds for step in steps if step.action is not Action.REJOIN), 70)
