"""What faults cost an all_reduce of two nodes with four rails each: real links of network namespaces, cut, silenced, shaped, under load.
Prints figures and what is asked of them; fails only if the rig does. Needs root."""

import argparse
import json
import pathlib
import sys

from testing.lab import layout, namespaces
from testing.lab.binaries import built_binaries
from testing.lab.lab import LabError
from testing.lab.lifetime import EndedBySignal, signals_unwind
from tests.bench import fault_figures, machine
from tests.bench.fault_cases import CASES, run_case
from tests.bench.fault_stage import Setup
from tests.bench.options import named_values, names_file, own_path
from tests.bench.pauses import Pauses

SILENCE_MS_DEFAULT = 250


def parse_arguments() -> argparse.Namespace:
  names = [case.name for case in CASES]
  parser = argparse.ArgumentParser(prog="faults", description=__doc__, allow_abbrev=False)
  parser.add_argument("--json", action="store_true", help="a JSON object per line and case; all else goes to standard error")
  parser.add_argument("--cases", type=lambda text: text.split(","), default=names, help=f"some of {','.join(names)} (default: all)")
  parser.add_argument("--fabric", choices=("rail", "full", "both"), default="both", help="default: %(default)s")
  parser.add_argument("--runs", type=int, help="of each case (default: 100 cuts, fewer of what takes longer)")
  parser.add_argument("--quick", action="store_true", help="few runs: a try, no figures to quote")
  parser.add_argument("--rate", default="500mbit", help="of one rail (default: %(default)s)")
  parser.add_argument("--size", default="16M", help="of the all_reduce (default: %(default)s)")
  parser.add_argument("--daemon", action="store_true", help="an r2ccd on each node")
  parser.add_argument("--plugin", type=names_file, metavar="PATH", help="instead of the one built here")
  parser.add_argument("--env", type=named_values, action="append", default=[], metavar="NAME=VALUE", help="in the environment of the job")
  parser.add_argument("--keep-logs", type=own_path, metavar="DIR", help="leave logs and traces of every job there")
  options = parser.parse_args()
  if unknown := set(options.cases) - set(names):
    parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(names)}")
  try:
    layout.rate_bits_per_s(options.rate)
  except LabError as error:
    parser.error(str(error))
  return options


def print_line(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> None:
  environment = {name: value for pair in options.env for name, value in pair.items()}
  binaries = built_binaries(options.plugin)
  binaries.check()
  namespaces.sweep()
  silence_ms = int(environment.get("R2CC_SILENCE_MS", SILENCE_MS_DEFAULT))
  facts = machine.describe()
  print_line(f"{machine.headline(facts)}; in the nodes' namespaces TCP {layout.CONGESTION_CONTROL}")
  others = machine.OthersShare()
  if not options.json:
    print(fault_figures.table_header(), flush=True)
  with Pauses(print_line) as pauses:
    setup = Setup(binaries, options.rate, options.size, environment, options.daemon, options.keep_logs, pauses, print_line)
    for fabric in ("rail", "full") if options.fabric == "both" else (options.fabric,):
      for case in CASES:
        if case.name not in options.cases:
          continue
        runs = options.runs or (case.quick_runs if options.quick else case.runs)
        print_line(f"{case.name}, {fabric} fabric: {runs} runs")
        result = fault_figures.json_object(run_case(case, fabric, runs, setup), silence_ms)
        print(json.dumps(result) if options.json else fault_figures.table_row(result), flush=True)
    windows = pauses.windows()
    print_line(f"the machine itself stood still {len(windows)} times, "
               f"{sum(one.end_ns - one.begin_ns for one in windows) / 1e6:.0f} ms in all, "
               f"{max((one.end_ns - one.begin_ns for one in windows), default=0) / 1e6:.1f} ms at the longest: left out")
  facts["others_share"] = round(others.share(), 3)
  if (warning := machine.warning(facts)) is not None:
    print_line(warning)


def main() -> int:
  options = parse_arguments()
  if (reason := namespaces.missing_feature()) is not None:
    print(f"faults: needs root: {reason}", file=sys.stderr)
    return 1
  try:
    with signals_unwind():
      run(options)
  except LabError as error:
    print(f"faults: {error}", file=sys.stderr)
    return 1
  except EndedBySignal as ended:
    print(f"faults: ended by {ended}; everything it started is gone", file=sys.stderr)
    return ended.exit_code
  return 0


if __name__ == "__main__":
  sys.exit(main())
