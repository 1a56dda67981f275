import pathlib
import tempfile
import unittest

from testing.lab import traces
from testing.lab.lab import LabError
from testing.lab.traces import Row

TEXT = traces.HEADER + "\nrecv,1000,2,r1.c0.recv.r2,1048576,250\niteration,2000,2,7,67108864,900\n"


class ParseTrace(unittest.TestCase):

  def test_reads_rows(self):
    self.assertEqual(traces.parse_trace(TEXT), [Row("recv", 1000, 2, "r1.c0.recv.r2", 1 << 20, 250),
                                                Row("iteration", 2000, 2, "7", 1 << 26, 900)])

  def test_a_wait_begins_where_it_should(self):
    self.assertEqual(traces.parse_trace(TEXT)[0].begin_ns, 750)

  def test_leaves_out_a_torn_last_line(self):
    self.assertEqual(len(traces.parse_trace(TEXT + "recv,3000,2,r1.c0")), 2)
    self.assertEqual(len(traces.parse_trace(TEXT + "recv,3000,2,f,1,1")), 2)  # 1 may be the beginning of 100

  def test_refuses_what_is_no_trace(self):
    with self.assertRaisesRegex(LabError, "here.*'recv,soon,2,f,1,1'"):
      traces.parse_trace(TEXT + "recv,soon,2,f,1,1\n", "here")
    with self.assertRaises(LabError):
      traces.parse_trace(TEXT + "recv,1\n")


class Follower(unittest.TestCase):

  def test_joins_a_line_that_came_in_two_parts(self):
    with tempfile.TemporaryDirectory() as folder:
      prefix = pathlib.Path(folder) / "trace"
      follower = traces.TraceFollower(prefix, ranks=2)
      self.assertEqual(follower.poll(), [])
      with open(f"{prefix}.1.csv", "w", encoding="ascii") as file:
        file.write(TEXT[:-10])
        file.flush()
        self.assertEqual([row.kind for row in follower.poll()], ["recv"])
        file.write(TEXT[-10:])
        file.flush()
        self.assertEqual([row.kind for row in follower.poll()], ["iteration"])
      self.assertEqual(follower.rows, traces.parse_trace(TEXT))
