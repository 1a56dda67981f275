"""Tensor taps on one GPU: needs PyTorch with CUDA and NumPy, and nothing else; no root.

Results are JSON objects, one a line, on standard output and in OUT/results.jsonl; progress goes to standard error."""

import argparse
import importlib
import json
import os
import pathlib
import sys
import time

from tests.gpu.results import Results

CASES = {  # the module of each, and whether it is one of those that run without --cases
    "taps-match": ("match", True), "taps-lean": ("lean", True), "taps-compile": ("compiled", False), "taps-hf": ("hf", False),
    "taps-gather": ("gather", False), "taps-files": ("files", False), "taps-prefill": ("prefill", False),
    "taps-readers": ("crowd", False), "taps-rows": ("rows", False), "taps-agree": ("agree", False), "taps-sanitize": ("sanitize", False)}


def machine(results):
  import torch  # pylint: disable=import-outside-toplevel
  from tests.observe.gpu import card  # pylint: disable=import-outside-toplevel
  if not card.ON_GPU:
    results.add("machine", "no GPU", try_of_the_code_alone=True)
    return
  properties = torch.cuda.get_device_properties(0)
  results.add("machine", "", gpu=properties.name, processors=properties.multi_processor_count, torch=torch.__version__,
              python=sys.version.split()[0], cores=os.cpu_count(), date=time.strftime("%Y-%m-%d %H:%M:%S %z"), arguments=sys.argv[1:])


def part(name, arguments):
  """What this program does in the processes that its cases start."""
  # pylint: disable=import-outside-toplevel
  if name == "_tool":
    from r2cc.observe import _tool
    return _tool.main(arguments)
  if name == "_count":
    from tests.observe.gpu import readers
    readers.count_records(arguments[0])
  elif name in ("_verify", "_crowd", "_watch"):
    from tests.observe.gpu import readers
    {"_verify": readers.verify, "_crowd": readers.read_all, "_watch": readers.watch}[name](json.loads(arguments[0]))
  elif name == "_job":
    from tests.observe.gpu import crowd
    crowd.job(json.loads(arguments[0]))
  elif name == "_rows":
    from tests.observe.gpu import rows
    rows.verify(json.loads(arguments[0]))
  elif name == "_rank":
    from tests.observe.gpu import agree
    agree.rank(json.loads(arguments[0]))
  return 0


def main(program):
  if sys.argv[1:2] and sys.argv[1].startswith("_"):
    return part(sys.argv[1], sys.argv[2:])
  parser = argparse.ArgumentParser(prog="run", description=__doc__, allow_abbrev=False)
  parser.add_argument("--cases", default=",".join(name for name, (_, usual) in CASES.items() if usual),
                      help=f"comma separated, of {', '.join(CASES)} (default: %(default)s)")
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("r2cc-taps"), metavar="DIR", help="(default: %(default)s)")
  parser.add_argument("--quick", action="store_true", help="each case short: a try")
  parser.add_argument("--only", help="parts of the cases, comma separated, such as whole,batch1-32taps")
  parser.add_argument("--kinds", help="of taps-lean and taps-hf, comma separated, such as none,ours,control,off,stats,hash,held16,"
                      "stopped,link,pinned,eager,cpu; disk: with a folder on a full disk in R2CC_TAPS_FULL_DISK")
  parser.add_argument("--captures", type=int, default=3, help="of each variant of taps-lean and taps-hf (default: %(default)s)")
  parser.add_argument("--rounds", type=int, default=4, help="of each capture (default: %(default)s)")
  parser.add_argument("--steps", type=int, help="of each variant of taps-match (default: 500; with --quick 60)")
  parser.add_argument("--seconds-limit", type=float, default=570,
                      help="taps-lean and taps-hf leave out what no longer fits (default: %(default)s)")
  options = parser.parse_args()
  chosen = options.cases.split(",")
  if set(chosen) - CASES.keys():
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
  for case in chosen:
    module = importlib.import_module("tests.observe.gpu." + CASES[case][0])
    if case in ("taps-lean", "taps-hf"):
      failed += module.run(results, program, options.quick, only, options.captures, options.rounds,
                           deadline_s=begin_s + options.seconds_limit, kinds=options.kinds.split(",") if options.kinds else None)
    elif case == "taps-match":
      failed += module.run(results, program, options.quick, only, options.steps)
    else:
      failed += module.run(results, program, options.quick, only)
  results.add("end", "all cases", failed=failed)
  return 1 if failed else 0
