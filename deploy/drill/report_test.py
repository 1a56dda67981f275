"""What a person reads."""

import unittest

from deploy.drill import report
from deploy.drill.record import Record
from testing.lab.traces import Row

S = 1_000_000_000


def record_of(gbps: float) -> Record:
  """A rank that receives at `gbps`, for ten seconds."""
  record = Record("verbs", nodes=1, rate_gbps=None, begin_ns=0, end_ns=10 * S)
  record.traces = [[Row(kind, (10 * i + 10) * S // 1000, 0, "f", round(gbps * 1e9 / 8 / 100), S // 100) for i in range(1000)
                    for kind in ("recv", "iteration")]]
  return record


class Rates(unittest.TestCase):

  def test_rates_of_an_emulated_machine_are_in_megabits(self):
    self.assertEqual([report.rate_text(gbps) for gbps in (1.25, 0.2, 0.0123, 0)], ["1.25 Gb/s", "0.20 Gb/s", "12.3 Mb/s", "0.0 Mb/s"])
    self.assertIn("Mb/s", report.goodput_chart(record_of(0.08), 80).plain)
    self.assertIn("80.00 ", report.goodput_chart(record_of(0.08), 80).plain)
    self.assertIn("Gb/s", report.goodput_chart(record_of(1), 80).plain)
