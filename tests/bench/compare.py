"""R2CC against a plain net plugin with one socket per communicator and no protection: interleaved pairs of r2cc-perf runs, ring all_reduce
of 2 ranks on loopback rails, and iperf3 on the same addresses as the limit. Prints figures; fails only if a run does."""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

from testing.lab.binaries import built_file
from testing.lab.lab import LabError
from testing.lab.lifetime import EndedBySignal, signals_unwind
from tests.bench import compare_figures, iperf, machine, paired, perf_run
from tests.bench.compare_figures import Pair
from tests.bench.options import named_values, names_file, positive_numbers

LARGE_BYTES = (16 << 20, 64 << 20, 256 << 20)
SMALL_FIRST, SMALL_LAST = "8", "64K"
# A run of a large size moves so much in its timed iterations: long beside the start of a process, short beside a machine's drift.
LARGE_RUN_BYTES, QUICK_LARGE_RUN_BYTES = 1 << 30, 256 << 20
LARGE_ITERATIONS_MIN = 4
# Small ones run in bursts, one right after the other, and only yield while they wait, as under NCCL: alone, an all_reduce is shorter than
# the time in which two processes wake up for it, and a sleep of the progress loop is longer than a message.
SMALL_ITERATIONS, QUICK_SMALL_ITERATIONS = 40, 20
SMALL_BURST = 20
# A rank's share: large messages are moved by several threads, and a plugin's threads keep to the processors of its process.
LARGE_PROCESSORS = max(1, (os.cpu_count() or 1) // perf_run.RANKS)


def parse_arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="compare", description=__doc__, allow_abbrev=False)
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object; all else goes to standard error")
  parser.add_argument("--pairs", type=int, help="of small sizes (default: 120; with --quick 10)")
  parser.add_argument("--large-pairs", type=int, help="of large sizes (default: 20; with --quick 6)")
  parser.add_argument("--rails", type=positive_numbers, default=[1, 4], help="numbers of rails (default: 1,4)")
  parser.add_argument("--small", action="store_true", help="small sizes alone")
  parser.add_argument("--large", action="store_true", help="large sizes alone, with iperf3")
  parser.add_argument("--quick", action="store_true", help="less than 2 minutes; the figures are rough")
  parser.add_argument("--plugin", type=names_file, metavar="PATH", help="instead of the one built here")
  parser.add_argument("--control", type=names_file, metavar="PATH", help="instead of the plain plugin, such as another build of R2CC")
  parser.add_argument("--env", type=named_values, action="append", default=[], metavar="NAME=VALUE",
                      help="in the environment of the plugin (not the control's); may be given more than once")
  parser.add_argument("--idle-sleep-us", type=int,
                      help="r2cc-perf's, for both (default: 0 for small sizes, which only yields, as NCCL does; r2cc-perf's own for large)")
  parser.add_argument("--burst", type=int, default=SMALL_BURST,
                      help=f"so many small all_reduces follow one another at once (default: {SMALL_BURST})")
  options = parser.parse_args()
  options.pairs = options.pairs or (10 if options.quick else 120)
  options.large_pairs = options.large_pairs or (6 if options.quick else 20)
  if not options.small and not options.large:
    options.small = options.large = True
  return options


class Comparison:
  """One comparison."""

  def __init__(self, options: argparse.Namespace):
    self._options = options
    self._perf = built_file("tools/perf/r2cc-perf")
    self._ours: pathlib.Path = options.plugin or built_file("netplugin/libnccl-net-r2cc.so")
    self._theirs: pathlib.Path = options.control or built_file("tests/control/libnccl-net-plain.so")
    self._environment = dict(pair for pairs in options.env for pair in pairs.items())
    for path in (self._perf, self._ours, self._theirs):
      if not path.is_file():
        raise perf_run.RunFailed(f"{path} does not exist; build it, or name another")

  def check(self, rails: int) -> None:
    """Wrong data make figures void, so each plugin proves itself first with every element checked."""
    flags = ["-b", "16M", "-n", "2", "-w", "0", "-c", "1", "--slot-checks", "1"]
    perf_run.run(self._perf, self._ours, rails, flags, self._environment)
    perf_run.run(self._perf, self._theirs, rails, flags, {})

  def pairs(self, what: str, rails: int, processors: int, flags: list[str], count: int) -> dict[int, list[Pair]]:
    """By size. Each rank has processors of its own, as ranks on nodes have: else the scheduler's choice is most of what is measured."""
    found: dict[int, list[Pair]] = {}
    flags = [*flags, "-c", "0", "--slot-checks", "0", "--pin", str(processors)]
    if self._options.idle_sleep_us is not None:
      flags += ["--idle-sleep-us", str(self._options.idle_sleep_us)]
    begin_s = time.monotonic()
    for pair in range(count):
      ours = lambda: perf_run.run(self._perf, self._ours, rails, flags, self._environment)
      theirs = lambda: perf_run.run(self._perf, self._theirs, rails, flags, {})
      if paired.ours_first(pair):
        one, other = ours(), theirs()
      else:
        other, one = theirs(), ours()
      for mine, its in zip(one, other):
        found.setdefault(mine.size_bytes, []).append(Pair(mine, its))
    print_line(f"{what}, {rails} rail{'s' if rails > 1 else ''}: {count} pairs in {time.monotonic() - begin_s:.0f} s")
    return found

  def limit(self, rails: int) -> dict[str, Any]:
    addresses = perf_run.rail_addresses(rails)
    runs, seconds = (1, 1.0) if self._options.quick else (5, 2.0)
    both_ways, one_way = [], []
    for _ in range(runs):
      both_ways.append(iperf.limit_gbps(addresses, True, seconds))
      one_way.append(iperf.limit_gbps(addresses, False, seconds))
    print_line(f"iperf3, {rails} rail{'s' if rails > 1 else ''}: {runs} runs")
    return {"rails": rails, "runs": runs, "both_ways_gbps": round(statistics.median(both_ways), 3),
            "one_way_gbps": round(statistics.median(one_way), 3)}

  def run(self) -> dict[str, Any]:
    options = self._options
    facts = machine.describe()
    print_line(machine.headline(facts))
    others = machine.OthersShare()
    result: dict[str, Any] = {"machine": facts, "plugin": str(self._ours), "control": str(self._theirs), "environment": self._environment,
                              "iperf3": [], "large": [], "small": []}
    begin_s = time.monotonic()
    for rails in options.rails:
      self.check(rails)
      if options.large:
        limit = self.limit(rails)
        result["iperf3"].append(limit)
        run_bytes = QUICK_LARGE_RUN_BYTES if options.quick else LARGE_RUN_BYTES
        for size in LARGE_BYTES:
          flags = ["-b", str(size), "-n", str(max(LARGE_ITERATIONS_MIN, run_bytes // size)), "-w", "2"]
          found = self.pairs(compare_figures.size_text(size), rails, LARGE_PROCESSORS, flags, options.large_pairs)
          result["large"] += [compare_figures.large(rails, size, pairs, limit["both_ways_gbps"]) for size, pairs in found.items()]
      if options.small:
        iterations = QUICK_SMALL_ITERATIONS if options.quick else SMALL_ITERATIONS
        flags = ["-b", SMALL_FIRST, "-e", SMALL_LAST, "-f", "2", "-n", str(iterations), "-w", "10", "-m", str(options.burst)]
        if options.idle_sleep_us is None:
          flags += ["--idle-sleep-us", "0"]
        found = self.pairs(f"{SMALL_FIRST} to {SMALL_LAST}", rails, 1, flags, options.pairs)
        result["small"] += [compare_figures.small(rails, size, pairs) for size, pairs in found.items()]
    facts["others_share"] = round(others.share(), 3)
    result["seconds"] = round(time.monotonic() - begin_s, 1)
    return result


def print_line(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def show(result: dict[str, Any]) -> None:
  print(machine.headline(result["machine"]))
  for table, rows in ((compare_figures.limit_table, result["iperf3"]), (compare_figures.large_table, result["large"]),
                      (compare_figures.small_table, result["small"])):
    if rows:
      print("\n" + "\n".join(table(rows)))
  print("\nRatios are medians over interleaved pairs, r2cc / plain; bounds by order statistics. A busbw is that of both ways loaded: "
        "compare iperf3's both ways. CPU: user and system time of both ranks per 1e9 bytes sent, the reduction included.")


def main() -> int:
  options = parse_arguments()
  try:
    with signals_unwind():
      result = Comparison(options).run()
  except (perf_run.RunFailed, iperf.LimitFailed, LabError) as error:
    print(f"compare: {error}", file=sys.stderr)
    return 1
  except EndedBySignal as ended:
    print(f"compare: ended by {ended}", file=sys.stderr)
    return ended.exit_code
  if not options.json:
    show(result)
  if (warning := machine.warning(result["machine"])) is not None:
    print_line(warning) if options.json else print(warning)
  if options.json:
    print(json.dumps(result))
  return 0


if __name__ == "__main__":
  sys.exit(main())
