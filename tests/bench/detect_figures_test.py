import unittest

from tests.bench.detect_figures import Broken, Found, false_verdicts, found, page_ns, state_of, stations_ms


def state(sequence: int, when_ns: int, nic: str, to: str) -> dict:
  node, name = nic.split("/")
  return {"sequence": str(sequence), "monotonic_ns": str(when_ns), "kind": "nic-state", "node": node, "nic": name, "to_state": to,
          "message": "why"}


def plan(sequence: int, when_ns: int) -> dict:
  return {"sequence": str(sequence), "monotonic_ns": str(when_ns), "kind": "plan-published", "node": "n0"}


class DetectFigures(unittest.TestCase):

  def test_the_page_follows_the_verdict(self):
    events = [plan(1, 5), state(2, 10, "n1/rail0", "FAILED"), plan(3, 11), state(4, 20, "n1/rail2", "SUSPECT"), plan(5, 21),
              state(6, 30, "n1/rail2", "FAILED"), plan(7, 31), plan(8, 40)]
    self.assertEqual(page_ns(events, "n1/rail2", 15), 31)
    self.assertIsNone(page_ns(events, "n1/rail2", 35))
    self.assertIsNone(page_ns(events, "n2/rail2", 0))
    self.assertIsNone(page_ns(events[:-2], "n1/rail2", 15))

    self.assertEqual(found(events, "n1/rail2", 15), Found(verdict_ns=30, page_ns=31))

  def test_the_last_node_is_everybodys(self):
    nodes = [Found(4_000_000, 5_000_000), Found(1_500_000, 2_000_000), Found(3_000_000, 7_000_000)]
    stations = {"own_verdict": 0.5, "own_page": 1.0, "verdicts": 3.0, "pages": 6.0}
    self.assertEqual(stations_ms(1_000_000, None, nodes, 1), stations)
    self.assertEqual(stations_ms(1_000_000, 1_250_000, nodes, 1), {"kernel": 0.25} | stations)

  def test_the_last_state_counts(self):
    events = [state(1, 10, "n1/rail0", "FAILED"), state(2, 20, "n1/rail0", "PROVING")]
    self.assertEqual(state_of(events, "n1/rail0"), "PROVING")
    self.assertIsNone(state_of(events, "n1/rail1"))

  def test_only_accusations_without_a_fault_are_false(self):
    events = [state(1, 10, "n0/rail0", "FAILED"), state(2, 20, "n0/rail0", "HEALTHY"), state(3, 30, "n0/rail1", "SUSPECT"),
              state(4, 40, "n1/rail1", "FAILED"), state(5, 50, "n0/rail0", "DEGRADED")]
    faults = [Broken("n0/rail0", 5, 25)]
    self.assertEqual(false_verdicts(events, "n0", faults), ["n0/rail1 SUSPECT: why", "n0/rail0 DEGRADED: why"])
    self.assertEqual(false_verdicts(events, "n0", faults, since_ns=45), ["n0/rail0 DEGRADED: why"])


if __name__ == "__main__":
  unittest.main()
