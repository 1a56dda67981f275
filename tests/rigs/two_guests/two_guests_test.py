"""What takes two kernels: a cable pulled from outside, a machine that stands still, a machine that is gone. Each byte is checked."""

import time
import unittest

from testing.guest import guest
from tests.rigs.two_guests import ranks
from tests.rigs.two_guests.two_guests import TwoGuests

# Waits end as soon as what they wait for is there.
PATIENCE_S = 240
LIMIT_S = 600
SOME = 32
# Of the one whose peer is killed.
DEADLINE_MS = 8000
# It counts from when the peer's kernel is known to be silent: kOobUserTimeoutMs of netplugin/transport/tcp/socket.cc, and what an emulated
# machine on a busy one is late.
SURE_S, LATE_S = 8.0, 10.0
# Both are longer than R2CC_SILENCE_MS, and one than the NIC's own retries (0.94 s, netplugin/transport/verbs/queue_pair.h): then its peer's
# NIC says that the queue pairs are broken. On a busy machine it may say so of the other, too.
STILL_S = (0.5, 8.0)
# As plan/page/ring.cc has it.
SILENCE = "(the other end does not answer on it)"


class TwoGuestsTest(unittest.TestCase):

  def setUp(self):
    reason = guest.missing_feature()
    if reason is not None:
      self.skipTest(f"needs one_guest: {reason}")
    self.printed = []
    self.pair = TwoGuests(ranks.RAILS, self._show)
    self.enterContext(self.pair)

  def _show(self, line: str) -> None:
    self.printed.append(line)
    print(line, flush=True)

  def _begin(self, **environment: str) -> None:
    self.pair.begin([ranks.command(0), ranks.command(1)], ranks.environment(environment), LIMIT_S)
    self.job = ranks.Ranks(self.pair)
    self.assertTrue(self.job.await_more(SOME, PATIENCE_S), "the job has not begun")

  def _given_up(self, words: str = "") -> int:
    """How often a link was given up, of those lines that have `words` in them."""
    return sum(" given up (" in line and words in line for line in self.printed)

  def _links_up(self) -> bool:
    """By what was said last of each."""
    for link in (f"link n{node}/rail{rail} -> " for node in (0, 1) for rail in range(ranks.RAILS)):
      of_link = [line for line in self.printed if link in line]
      if not of_link or " is up, incarnation " not in of_link[-1]:
        return False
    return True

  def _end_well(self) -> None:
    self.job.stop()
    self.assertTrue(self.pair.await_(lambda: not any(machine.goes_on() for machine in self.pair.guests), PATIENCE_S))
    for machine in self.pair.guests:
      result = machine.result()
      self.assertEqual((result.status, result.kernel_complaints()), (0, []))

  def _after(self, what: str, begin: list[int]) -> None:
    """The job has gone on since: how long each rank stood still, by its own clock."""
    waits = " and ".join(f"{self.job.longest_wait_ms(rank, begin[rank]):.0f} ms at n{rank}" for rank in (0, 1))
    self._show(f"{what}: longest wait {waits}; {self._given_up()} links given up until now")

  def _counts(self) -> list[int]:
    return [len(self.job.rows(rank)) for rank in (0, 1)]

  def test_a_cable_pulled_at_either_end_costs_time(self):
    self._begin()
    for node, rail in ((0, 0), (1, 1)):
      # A busy machine may lose one by itself.
      self.assertTrue(self.pair.await_(self._links_up, PATIENCE_S), "not all links are up")
      before, given_up = self._counts(), self._given_up(f"/rail{rail} -> ")
      self.pair.set_cable(node, rail, plugged=False)
      self.assertTrue(self.job.await_more(SOME, PATIENCE_S), f"since rail{rail} of n{node} was pulled")
      self._after(f"cable of rail{rail} pulled at n{node}", before)
      self.assertGreater(self._given_up(f"/rail{rail} -> "), given_up)
      up = self._ups(rail)
      self.pair.set_cable(node, rail, plugged=True)
      self.assertTrue(self.pair.await_(lambda: self._ups(rail) > up, PATIENCE_S), f"rail{rail} does not come back")
      self.assertTrue(self.job.await_more(SOME, PATIENCE_S))
    self._end_well()

  def _ups(self, rail: int) -> int:
    return sum(f"rail rail{rail} is up" in line for line in self.printed)

  def test_a_machine_that_stands_still_is_waited_for(self):
    self._begin()
    for seconds in STILL_S:
      self.assertTrue(self.pair.await_(self._links_up, PATIENCE_S), "not all links are up")
      before, silences = self._counts(), self._given_up(SILENCE)
      self.pair.freeze(1)
      self._pass(seconds)
      self.pair.thaw(1)
      self.assertTrue(self.job.await_more(SOME, PATIENCE_S), f"since n1 stood still for {seconds:g} s")
      self._after(f"n1 stood still for {seconds:g} s", before)
      self.assertEqual(self._given_up(SILENCE), silences, "a machine that stood still was taken for a silent rail")
    self._end_well()

  def _pass(self, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    self.pair.await_(lambda: time.monotonic() >= until_s, seconds + 1)

  def test_a_machine_that_is_gone_is_an_error_at_the_deadline(self):
    self._begin(R2CC_DEADLINE_MS=str(DEADLINE_MS))
    survivor = self.pair.guests[0]
    self.pair.guests[1].kill()
    killed_s = time.monotonic()
    self.assertTrue(self.pair.await_(lambda: self._gave_up_line() is not None, PATIENCE_S), "no error")
    seconds = time.monotonic() - killed_s
    self._show(f"n1 was killed: n0's error came {seconds:.1f} s later, with R2CC_DEADLINE_MS={DEADLINE_MS}")
    self.assertGreaterEqual(seconds, 0.9 * DEADLINE_MS / 1000)
    self.assertLess(seconds, DEADLINE_MS / 1000 + SURE_S + LATE_S)
    self.assertTrue(self.pair.await_(lambda: not survivor.goes_on(), PATIENCE_S), "n0's rank does not end")
    result = survivor.result()
    self.assertEqual((result.status, result.kernel_complaints()), (1, []))

  def _gave_up_line(self) -> str | None:
    return next((line for line in self.printed if line.startswith("n0 | ") and "gave up" in line), None)
