"""Stock NCCL and PyTorch over the plugin on the GPUs of one machine: each node is a network namespace with shaped rails.

Needs root, PyTorch with CUDA, iproute2, and the built files beside it; builds and installs nothing. Results are JSON objects, one a line,
on standard output and in OUT/results.jsonl; progress goes to standard error."""

import argparse
import contextlib
import os
import pathlib
import platform
import signal
import sys
import tempfile
import time
import traceback
from types import FrameType

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Binaries
from testing.lab.lab import LabError
from testing.lab.layout import rate_bits_per_s
from testing.lab.lifetime import EndedBySignal, signals_unwind
from tests.gpu import cases, mps, tools
from tests.gpu.bench import Context
from tests.gpu.cases import Case
from tests.gpu.job import JobBroken
from tests.gpu.placement import dealt_processors
from tests.gpu.results import Results
from tests.gpu.stage import Setup

NODES_USUAL = 4
# Of each process, when a case breaks.
LOG_LINES = 5


class TimeIsUp(BaseException):
  """--seconds-limit has passed; only main() may swallow it."""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="run", description=__doc__, allow_abbrev=False)
  parser.add_argument("--list", action="store_true", help="the cases, with the seconds that each takes, roughly")
  parser.add_argument("--cases", help="comma separated (default: all); one of them with +daemon has an r2ccd on each node")
  parser.add_argument("--gpus", type=int, help="how many to use (default: all)")
  parser.add_argument("--nodes", type=int, help="emulated nodes (default: one a GPU, from 2 to 4; of seat: 4 and 8)")
  parser.add_argument("--rails", type=int, default=4, help="of each node (default: %(default)s)")
  parser.add_argument("--rate", default="8gbit", help="of each rail, such as 8gbit; none: not shaped (default: %(default)s)")
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("r2cc-gpu"), metavar="DIR",
                      help="results and logs (default: %(default)s)")
  parser.add_argument("--plugin", type=pathlib.Path, metavar="DIR", help="the folder of another libnccl-net-r2cc.so")
  parser.add_argument("--iproute2", type=pathlib.Path, metavar="DIR", help="packages of iproute2 and its libraries, unpacked")
  parser.add_argument("--mps", action="store_true",
                      help="NVIDIA's MPS: nodes that share a GPU use it side by side (default: in turns of its time)")
  parser.add_argument("--own-processors", action="store_true",
                      help="each node's ranks keep to processors of their own, dealt anew for each pair (default: all may use all)")
  parser.add_argument("--nccl", type=pathlib.Path, metavar="PATH", help="another libnccl.so.2, loaded before PyTorch's")
  parser.add_argument("--python", default=sys.executable, metavar="PATH", help="one that has PyTorch (default: %(default)s)")
  parser.add_argument("--seconds-limit", type=float, metavar="N", help="ends the run in order, with the results so far")
  parser.add_argument("--quick", action="store_true", help="each case short: a try")
  parser.add_argument("--sizes", choices=("all", "small", "large"), default="all",
                      help="of healthy and unshaped: up to 1 MiB, from 16 MiB on (default: %(default)s)")
  parser.add_argument("--steps", type=int, help="of a training run (default: 100; with --quick 40)")
  parser.add_argument("--seeds", type=int, help="of training (default: 3; with --quick 1)")
  parser.add_argument("--first-seed", type=int, default=0, help="of training (default: %(default)s)")
  parser.add_argument("--sequences", type=int, default=0, help="of 1024 tokens, of a rank's batch in training (default: calibrated)")
  parser.add_argument("--rounds", type=int, default=1, help="with --sequences: batches of a training step (default: %(default)s)")
  parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="in the environment of R2CC's ranks")
  parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tries these programs with gloo, not the plugin")
  options = parser.parse_args(argv)
  try:
    options.chosen = cases.chosen(options.cases.split(",")) if options.cases else list(cases.CASES)
    options.rate = None if options.rate == "none" else options.rate
    if options.rate is not None:
      rate_bits_per_s(options.rate)
  except (ValueError, LabError) as error:
    parser.error(str(error))
  if not all("=" in pair for pair in options.env):
    parser.error("--env wants NAME=VALUE")
  if options.rails < 2:
    parser.error("--rails: at least 2, so that one can fail")
  options.steps = options.steps or (40 if options.quick else 100)
  if options.steps < 10:
    parser.error("--steps: at least 10, so that every fault has a step of its own")
  options.seeds = options.seeds or (1 if options.quick else 3)
  return options


def own_cores(nodes: int) -> list[tuple[int, ...]]:
  """For --own-processors; enough of them for so many nodes."""
  cores = tools.processor_cores(os.sched_getaffinity(0))
  try:
    dealt_processors(cores, nodes, 0)
  except ValueError as error:
    raise tools.Missing(f"--own-processors: {error}; leave it out, or use fewer --nodes") from error
  return cores


def make_setup(options: argparse.Namespace, program: pathlib.Path, results: Results, wrappers: pathlib.Path) -> Setup:
  """Looks for all that is needed; Missing says what is not there."""
  if os.geteuid() != 0:
    raise tools.Missing("needs root, for network namespaces")
  library_path = os.environ.get("LD_LIBRARY_PATH", "")
  if options.iproute2 is not None:
    tools.wrapped_iproute2(options.iproute2.absolute(), wrappers)
    os.environ["PATH"] = f"{wrappers}:{os.environ.get('PATH', '')}"
  tools.check_iproute2()
  namespaces.sweep()
  if (reason := namespaces.missing_feature()) is not None:
    raise tools.Missing(f"this kernel makes no emulated nodes: {reason}")
  plugin = None if options.plugin is None else options.plugin.absolute() / "libnccl-net-r2cc.so"
  binaries: Binaries = built_binaries(plugin)
  for name in ("plugin", "daemon", "ctl"):
    if not getattr(binaries, name).is_file():
      raise tools.Missing(f"there is no {getattr(binaries, name)}; unpack the kit as a whole, or build //tests/gpu:kit")
  if any(case.daemons for case in options.chosen) and (problem := tools.glibc_problem(binaries.daemon)) is not None:
    raise tools.Missing(problem)
  if options.nccl is not None and not options.nccl.is_file():
    raise tools.Missing(f"--nccl: there is no file {options.nccl}")
  found = tools.probe_torch(options.python, library_path)
  gpus = int(found["gpus"]) if options.device == "cuda" else 0
  if options.device == "cuda" and gpus < 1:
    raise tools.Missing(f"{options.python}'s PyTorch {found['torch']} sees no GPU")
  if options.gpus is not None:
    if options.device == "cuda" and not 1 <= options.gpus <= gpus:
      raise tools.Missing(f"--gpus {options.gpus}: there are {gpus}")
    gpus = options.gpus
  nodes = options.nodes or min(NODES_USUAL, max(2, gpus))
  cores = own_cores(nodes) if options.own_processors else []
  rate = options.rate or "none"
  results.print_line(", ".join(f"{name} {value}" for name, value in found.items()) +
                     f"; {nodes} nodes, {options.rails} rails, rate {rate}; Linux {platform.release()}, {os.cpu_count()} cores")
  results.add("machine", "", **found, used_gpus=gpus, nodes=nodes, rails=options.rails, rate=rate, kernel=platform.release(),
              cores=os.cpu_count(), mps=options.mps, arguments=sys.argv[1:], date=time.strftime("%Y-%m-%d %H:%M:%S %z"))
  return Setup(binaries=binaries, program=program, python=options.python,
               device=options.device, gpus=gpus, cores=cores, nodes=nodes, nodes_asked=options.nodes, rails=options.rails,
               rate=options.rate,
               nccl=None if options.nccl is None else options.nccl.absolute(), out=options.out, quick=options.quick, sizes=options.sizes,
               steps=options.steps, seeds=options.seeds, first_seed=options.first_seed, sequences=options.sequences, rounds=options.rounds,
               library_path=library_path, environment=dict(pair.split("=", 1) for pair in options.env), print_line=results.print_line)


def show_logs(context: Context) -> None:
  """The last lines of each process of the case that just broke."""
  folders = sorted((context.setup.out / "logs").iterdir(), key=lambda folder: folder.stat().st_mtime)
  for path in sorted(folders[-1].iterdir()) if folders else []:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines[-LOG_LINES:]:
      context.results.print_line(f"    {path.name}: {line[:300]}")


def run_case(case: Case, context: Context) -> bool:
  """False: it broke; why is in the results."""
  results, context.case = context.results, case.name
  results.print_line(f"{case.name}: {case.what}")
  begin_s = time.monotonic()
  try:
    case.act(context, case.name, case.daemons)
    results.print_line(f"{case.name}: done in {time.monotonic() - begin_s:.1f} s")
    return True
  except (JobBroken, LabError) as error:
    results.add(case.name, "broken", reason=str(error)[:1500], seconds=round(time.monotonic() - begin_s, 1))
    show_logs(context)
  except Exception as error:  # pylint: disable=broad-except
    # One case's mistake must not cost the others: machines with GPUs are dear.
    results.add(case.name, "not run", reason=f"{type(error).__name__}: {error}"[:600])
    if not isinstance(error, ValueError):
      traceback.print_exc()
      show_logs(context)
  context.drop_bench()
  return False


def run_all(options: argparse.Namespace, context: Context) -> int:
  failed = 0
  for case in options.chosen:
    failed += not run_case(case, context)
  context.end_bench()
  return failed + context.broken_ends


def main(program: pathlib.Path) -> int:
  options = parse_arguments(sys.argv[1:])
  if options.list:
    print(cases.listing(options.quick))
    return 0
  options.out = options.out.absolute()
  options.out.mkdir(parents=True, exist_ok=True)
  results = Results(options.out / "results.jsonl")

  def time_is_up(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise TimeIsUp()

  try:
    with signals_unwind(), tempfile.TemporaryDirectory(prefix="r2cc-gpu-tools-") as wrappers:
      if options.seconds_limit:
        signal.signal(signal.SIGALRM, time_is_up)
        signal.setitimer(signal.ITIMER_REAL, options.seconds_limit)
      context = Context(make_setup(options, program, results, pathlib.Path(wrappers)), results)
      with mps.service(options.out / "mps") if options.mps else contextlib.nullcontext({}) as environment:
        os.environ.update(environment)
        try:
          failed = run_all(options, context)
        finally:
          signal.setitimer(signal.ITIMER_REAL, 0)
          context.drop_bench()
  except tools.Missing as error:
    tools.print_error(str(error))
    return 2
  except TimeIsUp:
    results.add("end", "time is up", limit_s=options.seconds_limit)
    return 3
  except EndedBySignal as ended:
    tools.print_error(f"ended by {ended}; everything it started is gone")
    return ended.exit_code
  results.add("end", "all cases", failed=failed)
  return 1 if failed else 0
