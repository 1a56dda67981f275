import argparse
import unittest

from tests.bench import options


class Options(unittest.TestCase):

  def test_values(self):
    self.assertEqual(options.positive_numbers("1,4"), [1, 4])
    self.assertEqual(options.named_values("A=b=c"), {"A": "b=c"})

  def test_refusals(self):
    for kind, text in ((options.positive_numbers, "0"), (options.positive_numbers, "1,,2"), (options.named_values, "A"),
                       (options.named_values, "=b"), (options.names_file, "/no/such/file")):
      with self.subTest(text), self.assertRaises(argparse.ArgumentTypeError):
        kind(text)
