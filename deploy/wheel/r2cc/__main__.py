"""python -m r2cc env|run|doctor: a job with R2CC's plugin, from the files of this package."""

import sys

from r2cc import command_line

sys.exit(command_line.main(sys.argv[1:]))
