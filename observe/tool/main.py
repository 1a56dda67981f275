#!/usr/bin/python3 -B
"""r2cc-observe: producers, records, files and ranks of tensor taps."""

import sys

from r2cc.observe import _tool

if __name__ == "__main__":
  sys.exit(_tool.main())
