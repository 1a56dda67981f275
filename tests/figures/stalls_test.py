import json
import unittest

from tests.figures import stalls

HEAD = ",".join(stalls.COLUMNS) + "\n"


class StallsTest(unittest.TestCase):

  def test_the_longest_is_that_of_any_case(self):
    self.assertEqual(stalls.longest_ms(stalls.read(HEAD + "cut,a,2,1,9.5,m,c\nsilence,a,2,200,250.5,m,c\ncut,b,2,1,8,m,c\n")), 250.5)

  def test_invalid_tables_are_refused(self):
    for text in ("", HEAD, "case\ncut\n", HEAD + "cut,a,2,1,9.5,m\n", HEAD + "cut,a,2,9,1,m,c\n", HEAD + "cut,a,2,x,1,m,c\n"):
      with self.assertRaises(ValueError, msg=text):
        stalls.read(text)

  def test_a_run_replaces_what_it_measured_again(self):
    lines = [json.dumps(result) for result in ({"case": "cut", "variant": "a", "stalls_ms": [3.0, 1.0, 12.5]},
                                               {"case": "healthy", "variant": "x"},
                                               {"case": "silence", "variant": "a", "stalls_ms": [250.0]},
                                               {"case": "blackout", "variant": "a", "stalls_ms": [3000.0]})]
    new = stalls.measured(lines, "m", "new")
    old = stalls.read(HEAD + "double,a,1,5,6,m,old\ncut,a,2,1,9.5,m,old\ncut,a,2,1,7,other,old\n")
    self.assertEqual(stalls.written(stalls.merged(old, new)),
                     HEAD + "double,a,1,5,6,m,old\ncut,a,3,3,12.5,m,new\ncut,a,2,1,7,other,old\nsilence,a,1,250,250,m,new\n")

  def test_the_kept_file_can_be_read(self):
    rows = stalls.read(stalls.FILE.read_text(encoding="utf-8"))
    self.assertGreater(stalls.longest_ms(rows), 0)
    self.assertEqual(stalls.written(rows), stalls.FILE.read_text(encoding="utf-8"))
