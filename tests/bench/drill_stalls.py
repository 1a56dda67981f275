"""Runs the drill many times and prints what a lost rail costs: median and worst stall by kind of fault."""

import argparse
import json
import subprocess
import sys

from testing.lab.binaries import built_file
from tests.bench import stall_statistics

_DRILL_TIMEOUT_S = 300


def shown(figure: float | None) -> str:
  return "?" if figure is None else f"{figure:.2f}"


def main() -> int:
  parser = argparse.ArgumentParser(prog="drill_stalls", description=__doc__)
  parser.add_argument("--drills", type=int, default=20, help="how many (default: %(default)s)")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object; all else goes to standard error")
  parser.add_argument("drill_flags", nargs="*", help="handed to each drill, after a plain --; default: --quick")
  options = parser.parse_args()
  progress = sys.stderr if options.json else sys.stdout
  drills, failed = [], []
  for number in range(1, options.drills + 1):
    argv = [str(built_file("deploy/drill/drill")), "--json", *(options.drill_flags or ["--quick"])]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_DRILL_TIMEOUT_S, check=False)
    try:
      drill = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
      print(f"drill {number} left no result: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
      return 1
    drills.append(drill)
    if not drill["pass"]:
      failed.append(f"drill {number}: {drill['reason']}")
    stalls = ", ".join(f"{fault['kind']} {fault['rail']} {fault['stall_ms']} ms" for fault in drill["faults"])
    print(f"drill {number:3}  {'pass' if drill['pass'] else 'FAIL'}  {stalls}", file=progress, flush=True)

  faults, figures = stall_statistics.by_fault(drills), stall_statistics.figures(drills)
  for kind, result in faults.items():
    print(f"{kind:10}  median {shown(result['stall_ms_median'])} ms  worst {shown(result['stall_ms_worst'])} ms  of {result['faults']}; "
          f"all flows at once {shown(result['standstill_ms_worst'])} ms; "
          f"replayed in {result['replayed_faults']}, in mid-iteration {result['mid_iteration_faults']}", file=progress)
  for name, result in figures.items():
    print(f"{name:22}  median {shown(result['median'])}  worst {shown(result['worst'])}", file=progress)
  for line in failed:
    print(line, file=progress)
  if options.json:
    print(json.dumps({"drills": len(drills), "failed": failed, "faults": faults, "figures": figures}))
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
