"""r2cc-try: R2CC between this machine and another one, in two minutes."""

import subprocess
import sys

from rich.console import Console

from deploy.drill.release import RELEASE, REVISION
from deploy.trial.arguments import parse_arguments
from deploy.trial.trial import Trial
from testing.lab.binaries import built_binaries
from testing.lab.lab import LabError
from testing.lab.lifetime import EndedBySignal, signals_unwind

EXIT_FAILED = 1
LOG_WIDTH = 120


def version() -> str:
  """This program's, and what the programs say that it starts."""
  binaries = built_binaries()
  lines = [f"r2cc-try {RELEASE} (revision {REVISION or 'unknown: not from a package'})"]
  for program in (binaries.daemon, binaries.ctl, binaries.perf):
    lines.append(subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
  return "\n".join(lines)


def main() -> int:
  options = parse_arguments(sys.argv[1:], version)
  console = Console()
  if not console.is_terminal:
    console.width = LOG_WIDTH
  try:
    with signals_unwind(), Trial(options, console) as trial:
      outcome = trial.run()
  except LabError as error:
    print(f"r2cc-try: {error}", file=sys.stderr)
    return EXIT_FAILED
  except EndedBySignal as ended:
    print(f"r2cc-try: ended by {ended}; everything it started is gone", file=sys.stderr)
    return ended.exit_code
  for problem in outcome.problems:
    console.print(f"[bold red]FAIL[/bold red]  {problem}", highlight=False, soft_wrap=True)
  if outcome.problems:
    return EXIT_FAILED
  console.print(f"[bold green]PASS[/bold green]  the job went on without {outcome.fault}; every element was right", highlight=False,
                soft_wrap=True)
  return 0


if __name__ == "__main__":
  sys.exit(main())
