import unittest

from tests.bench import stall_statistics


def drill(stall_ms, replayed_bytes, busbw=2.0):
  fault = {"kind": "link-down", "stall_ms": stall_ms, "standstill_ms": stall_ms, "replayed_bytes": replayed_bytes, "mid_iteration": True}
  return {"faults": [fault], "busbw_healthy_gbps": busbw, "busbw_degraded_gbps": None, "busbw_restored_gbps": busbw}


class StallStatistics(unittest.TestCase):

  def test_worst_and_median_of_a_kind(self):
    result = stall_statistics.by_fault([drill(10.0, 5), drill(30.0, 0), drill(20.0, None), drill(None, 7)])
    self.assertEqual(list(result), ["link-down"])
    self.assertEqual((result["link-down"]["stall_ms_median"], result["link-down"]["stall_ms_worst"]), (20.0, 30.0))
    self.assertEqual((result["link-down"]["faults"], result["link-down"]["replayed_faults"]), (4, 2))

  def test_bandwidths(self):
    result = stall_statistics.figures([drill(1.0, 1, 1.0), drill(1.0, 1, 3.0)])
    self.assertEqual(result["busbw_healthy_gbps"], {"median": 2.0, "worst": 1.0})
    self.assertEqual(result["busbw_degraded_gbps"], {"median": None, "worst": None})

  def test_nothing_at_all(self):
    self.assertEqual(stall_statistics.by_fault([]), {})
