import unittest

from tests.figures.claims import claims
from tests.figures.tables import Table


def made(**tables):
  return {name: Table(name, columns, rows) for name, (columns, rows) in tables.items()}


class ClaimsTest(unittest.TestCase):

  def setUp(self):
    lost = [[gpus, count, "1.52", "1.60", "0.11", "0.12"] for gpus in ("512", "1024") for count in ("1", "10")]
    self.tables = made(
        training=(["job", "scheme", "overhead_percent", "fitted_batch_percent"],
                  [["2.7B data parallel 4x8", "R2CC-AllReduce", "0.28", ""], ["2.7B data parallel 4x8", "ours", "0.03", ""],
                   ["2.7B data parallel 2x8", "AdapCC-like", "7.00", "8.00"],
                   ["2.7B data parallel 2x8", "R2CC-AllReduce", "0.10", "0.50"]]),
        failures=(["gpus", "failures", "r2cc_percent", "r2cc_worst_percent", "ours_percent", "ours_worst_percent"], lost),
        optcc=(["p", "loss", "optcc_percent", "r2cc_allreduce_percent", "ours_percent"],
               [["8", "1/2", "14.5", "57.14", "14.4"], ["64", "1/2", "3.1", "50.8", "3.0"]]),
        serving=(["job", "scheme", "request_percent"], [["a", "Balance", "0.009"], ["b", "Balance", "0.014"], ["a", "ours", "0.008"]]),
        serving_outage=(["job", "scheme", "hit_request_percent"],
                        [["405B over two servers", "DejaVu-like; default time-out", "470"], ["405B over two servers", "R2CC", "10"],
                         ["405B over two servers", "ours", "0.1"]]),
        testbed=(["scheme", "chunks", "ratio"], [["R2CC-AllReduce", "4", "1.375"], ["ours", "32", "0.91"]]),
        collectives=(["collective", "percent_of_healthy"], [["ReduceScatter", "87.5"]]))

  def test_looks_up_and_divides(self):
    rows = {row[0]: row[1:] for row in claims(self.tables).rows}
    self.assertEqual(["12.18", "70.00; 16.00 with a fitted batch", ""], rows["2x8 GPUs training: overhead of AdapCC over that of R2CC"])
    self.assertEqual(["below 3", "0.014", "0.008"], rows["serving, one NIC lost: overhead, %"])
    self.assertEqual(["47", "47", "4700 (DejaVu over ours)"], rows["serving, the request that is hit: DejaVu over R2CC"])
    self.assertEqual(["4.3", "1.52; at worst 1.60", "0.11; at worst 0.12"], rows["512 GPUs, 10 lost NICs: iteration overhead, %"])
    self.assertEqual(["", "1.52; at worst 1.60", "0.11; at worst 0.12"], rows["1024 GPUs, 10 lost NICs: iteration overhead, %"])

  def test_a_row_that_is_not_there_is_an_error(self):
    self.tables["failures"].rows.pop()
    with self.assertRaisesRegex(ValueError, "table failures: 0 rows"):
      claims(self.tables)
