"""r2cc-try's flags without the trial, for its man page."""

import json
import sys

from deploy.drill.arguments import describe
from deploy.trial.arguments import make_parser


def main() -> int:
  parser = make_parser(lambda: "")
  if sys.argv[1:] == ["--help_json"]:
    print(json.dumps(describe(parser)))
  else:
    parser.parse_args()
  return 0


if __name__ == "__main__":
  sys.exit(main())
