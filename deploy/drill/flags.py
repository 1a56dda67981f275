"""The drill's flags without the drill, for its man page: --help shows them, --help_json has them as other programs' are."""

import json
import sys

from deploy.drill import arguments


def main() -> int:
  parser = arguments.make_parser(lambda: "")
  if sys.argv[1:] == ["--help_json"]:
    print(json.dumps(arguments.describe(parser)))
  else:
    parser.parse_args()
  return 0


if __name__ == "__main__":
  sys.exit(main())
