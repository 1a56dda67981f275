"""Runs a command in one emulated guest with soft-RoCE rails, and exits with its status. See rails.sh for what stands there."""

import argparse
import os
import sys

from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.guest import guest


def main() -> int:
  parser = argparse.ArgumentParser(prog="one_guest", description=__doc__)
  parser.add_argument("--rails", type=int, default=2, metavar="N", help="rails between the two nodes (2)")
  parser.add_argument("--wiring", choices=("pair", "bridge"), default="pair", help="what a rail is made of; bridge: one end can fail alone")
  parser.add_argument("--limit", type=float, default=600, metavar="S", help="seconds that the command may take (600)")
  parser.add_argument("command", nargs="+", help="program and arguments, after a plain --; paths begin at the workspace")
  options = parser.parse_args()
  reason = guest.missing_feature()
  if reason is not None:
    print(f"one_guest: no guest can run here: {reason}", file=sys.stderr)
    return 1
  # `bazel run` starts a program in its runfiles.
  os.chdir(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
  try:
    with signals_unwind(), guest.Guest(options.rails, options.wiring) as machine:
      return machine.run(options.command, limit_s=options.limit).status
  except guest.GuestError as error:
    print(f"one_guest: {error}", file=sys.stderr)
    return 1
  except EndedBySignal as ended:
    return ended.exit_code


if __name__ == "__main__":
  sys.exit(main())
