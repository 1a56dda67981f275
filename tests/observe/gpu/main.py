"""Tensor taps on one GPU: needs PyTorch with CUDA and NumPy, and nothing else; no root.

Results are JSON objects, one a line, on standard output and in OUT/results.jsonl; progress goes to standard error."""

import argparse
import json
import os
import pathlib
import sys
import time

from tests.gpu.results import Results

CASES = ("taps-match", "taps-lean")


def machine(results):
  import torch  # pylint: disable=import-outside-toplevel
  properties = torch.cuda.get_device_properties(0)
  results.add("machine", "", gpu=properties.name, processors=properties.multi_processor_count, torch=torch.__version__,
              python=sys.version.split()[0], cores=os.cpu_count(), date=time.strftime("%Y-%m-%d %H:%M:%S %z"), arguments=sys.argv[1:])


def main(program):
  if sys.argv[1:2] == ["_verify"]:
    from tests.observe.gpu import readers  # pylint: disable=import-outside-toplevel
    readers.verify(json.loads(sys.argv[2]))
    return 0
  if sys.argv[1:2] == ["_count"]:
    from tests.observe.gpu import readers  # pylint: disable=import-outside-toplevel
    readers.count_records(sys.argv[2])
    return 0
  parser = argparse.ArgumentParser(prog="run", description=__doc__, allow_abbrev=False)
  parser.add_argument("--cases", default=",".join(CASES), help="comma separated (default: %(default)s)")
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("r2cc-taps"), metavar="DIR", help="(default: %(default)s)")
  parser.add_argument("--quick", action="store_true", help="each case short: a try")
  parser.add_argument("--only", help="parts of the cases, comma separated, such as whole,batch1-32taps")
  parser.add_argument("--captures", type=int, default=3, help="of each variant of taps-lean (default: %(default)s)")
  parser.add_argument("--rounds", type=int, default=4, help="of each capture (default: %(default)s)")
  parser.add_argument("--seconds-limit", type=float, default=570, help="taps-lean leaves out what no longer fits (default: %(default)s)")
  options = parser.parse_args()
  chosen = options.cases.split(",")
  if set(chosen) - set(CASES):
    parser.error(f"--cases: there are {', '.join(CASES)}")
  begin_s = time.monotonic()
  options.out.mkdir(parents=True, exist_ok=True)
  results = Results(options.out / "results.jsonl")
  try:
    machine(results)
  except (ImportError, RuntimeError, AssertionError) as error:
    print(f"run: needs PyTorch and a GPU that it sees: {error}", file=sys.stderr)
    return 2
  only = set(options.only.split(",")) if options.only else None
  failed = 0
  if "taps-match" in chosen:
    from tests.observe.gpu import match  # pylint: disable=import-outside-toplevel
    failed += match.run(results, program, options.quick, only)
  if "taps-lean" in chosen:
    from tests.observe.gpu import lean  # pylint: disable=import-outside-toplevel
    failed += lean.run(results, program, options.quick, only, options.captures, options.rounds,
                       deadline_s=begin_s + options.seconds_limit)
  results.add("end", "all cases", failed=failed)
  return 1 if failed else 0
