import unittest

from tests.gpu import case_profiler
from tests.gpu.figures import Row

MS = 1_000_000
ROWS = [Row(number, (10 + 100 * number) * MS, (90 + 100 * number) * MS) for number in range(20)]
FAULT_NS = 350 * MS  # in the fourth, iteration 3
HELD = {"function": "ReduceScatter", "number": 4, "communicator": "255", "rank": 1, "ranks": 2, "node": "n1", "held_ns": "5000000"}


class ProfilerTest(unittest.TestCase):

  def mistakes(self, **changed: object) -> list[str]:
    return case_profiler.mistakes(HELD | changed, 255, 2, ROWS, FAULT_NS)

  def test_a_right_report_has_no_mistake(self) -> None:
    self.assertEqual(self.mistakes(), [])
    self.assertEqual(self.mistakes(number=5), [], "the next one may wait, too")

  def test_each_part_of_the_name_can_be_wrong(self) -> None:
    for changed in ({"function": "AllReduce"}, {"communicator": "254"}, {"rank": 0}, {"ranks": 3}, {"node": "n0"}, {"number": 3},
                    {"number": 0}, {"number": 12}, {"number": 99}):
      with self.subTest(changed=changed):
        self.assertEqual(len(self.mistakes(**changed)), 1)

  def test_the_communicators_are_those_that_nccl_logs(self) -> None:
    line = "h:1:1 [0] NCCL INFO ncclCommInitRankConfig comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x%s - Init %s\n"
    log = line % ("abc", "START") + line % ("abc", "COMPLETE") + line % ("ff", "COMPLETE")
    self.assertEqual(case_profiler.communicators(log), [0xabc, 0xff])

  def test_the_spread_is_what_two_jobs_without_it_differ(self) -> None:
    chance = {"ratio": 1.0, "low": 0.98, "high": 1.01}
    for ratio, low, high, within in ((1.0, 0.99, 1.01, True), (1.015, 1.0, 1.03, True), (0.9, 0.88, 0.92, True), (1.05, 1.03, 1.07, False),
                                     (1.03, 1.0, 1.06, False)):
      with self.subTest(ratio=ratio):
        self.assertEqual(case_profiler.within_spread({"ratio": ratio, "low": low, "high": high}, chance), within)
