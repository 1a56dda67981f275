"""Breaks real daemons and jobs at random, several things at once, by a script that a seed makes. Between each two nodes one rail stays
sound, so that no job may fail, hang or have a wrong byte, and nothing may be left behind. Needs root.

./bazelw run //tests/chaos -- --minutes 60 --seed 7
./bazelw run //tests/chaos -- --faults DIR/script.jsonl    # the same again, or without the lines that were taken out
./bazelw run //tests/chaos -- --guest --links bond --nodes 2 --rails 2 --rate 20mbit    # netem, bonds and VLANs, in an emulated machine
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

from testing.guest.guest import GuestError
from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import keep_logs
from testing.lab.lab import LabError
from testing.lab.layout import rate_bits_per_s
from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.lab.processes import Processes
from tests.bench.options import named_values, names_file, own_path
from tests.chaos import in_guest
from tests.chaos import run as runs
from tests.chaos import script as scripts
from tests.chaos.judge import Run
from tests.chaos.links import LINKS
from tests.chaos.script import Script, Shape
from tests.chaos.world import PRIORITY, ChaosCluster, ChaosLab, has_etcd

RATE = "200mbit"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="chaos", description=__doc__, allow_abbrev=False,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--minutes", type=float, default=10, help="default: %(default)s")
  parser.add_argument("--seed", type=int, default=1, help="of the script (default: %(default)s)")
  parser.add_argument("--nodes", type=int, default=3, help="default: %(default)s")
  parser.add_argument("--rails", type=int, default=3, help="of each node (default: %(default)s)")
  parser.add_argument("--rate", default=RATE, help="of a rail (default: %(default)s)")
  parser.add_argument("--fabric", choices=("rail", "full"), default="rail",
                      help="rail: rail K reaches rail K alone; full: each reaches each (default: %(default)s)")
  parser.add_argument("--strict-arp", action="store_true", help="an interface answers ARP for its own addresses alone")
  parser.add_argument("--links", choices=LINKS, default="veth",
                      help="what a rail is: one interface, a bond of two, a VLAN on one (default: %(default)s)")
  parser.add_argument("--guest", action="store_true", help="all of it in an emulated machine, whose kernel has netem, bonds and VLANs")
  parser.add_argument("--release", type=own_path, metavar="DIR", help="r2ccd of another release, DIR/daemon/r2ccd: daemons are upgraded")
  parser.add_argument("--store", choices=("embedded", "etcd"), default="embedded", help="default: %(default)s")
  parser.add_argument("--kinds", type=lambda text: text.split(","), default=[], help=f"of faults: some of {','.join(scripts.KINDS)}")
  parser.add_argument("--gap", type=float, default=scripts.GAP_S, metavar="SECONDS",
                      help="from one fault to the next, on average (default: %(default)s)")
  parser.add_argument("--jobs", type=lambda text: text.split(","), default=[], help=f"some of {','.join(scripts.JOB_KINDS)}")
  parser.add_argument("--faults", type=names_file, metavar="FILE", help="does the script of this file instead of a seed's")
  parser.add_argument("--print", action="store_true", help="print the script and do nothing")
  parser.add_argument("--out", type=own_path, metavar="DIR", help="leave chaos.md, chaos.json and script.jsonl there")
  parser.add_argument("--keep-logs", type=own_path, metavar="DIR", help="leave logs there, and the traces of jobs that did not end well")
  parser.add_argument("--plugin", type=names_file, metavar="PATH", help="instead of the one built here")
  parser.add_argument("--env", type=named_values, action="append", default=[], metavar="NAME=VALUE", help="in the environment of all jobs")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object")
  options = parser.parse_args(argv)
  if options.minutes < 0.5 or options.gap <= 0 or not 2 <= options.nodes <= 16 or not 2 <= options.rails <= 8:
    parser.error("--minutes is at least 0.5, --gap above 0, --nodes 2 to 16, --rails 2 to 8")
  for given, known in ((options.kinds, scripts.KINDS), (options.jobs, scripts.JOB_KINDS)):
    if unknown := set(given) - set(known):
      parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
  try:
    rate_bits_per_s(options.rate)
  except LabError as error:
    parser.error(str(error))
  return options


def script_of(options: argparse.Namespace) -> Script:
  if options.faults is not None:
    return scripts.read(options.faults.read_text(encoding="utf-8"))
  shape = Shape(options.nodes, options.rails, options.store == "etcd", options.fabric, options.strict_arp, options.links,
                options.guest or in_guest.is_inside(), options.release is not None)
  return scripts.make(options.seed, options.minutes * 60, shape, options.kinds, options.jobs, options.gap)


def print_line(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def run(options: argparse.Namespace, script: Script, folder: pathlib.Path) -> Run:
  binaries = built_binaries(options.plugin)
  binaries.check()
  if script.shape.etcd and not has_etcd():
    raise LabError("etcd is not installed: ./bazelw installs it")
  if script.shape.guest and not in_guest.is_inside():
    raise LabError("the script is for an emulated machine: add --guest")
  other_daemon = options.release and options.release / "daemon/r2ccd"
  if script.shape.release and (other_daemon is None or not os.access(other_daemon, os.X_OK)):
    raise LabError(f"the script upgrades daemons: --release names the folder of another release's programs, not {options.release}")
  namespaces.sweep()
  os.nice(PRIORITY)
  shared_before = runs.shared_memory()
  environment = {name: value for pair in options.env for name, value in pair.items()}
  shape = script.shape
  lab = ChaosLab(shape, options.rate, folder)
  with signals_unwind():
    with lab, Processes(folder) as processes:
      cluster = ChaosCluster(lab, binaries, folder, processes, script.shape.etcd, other_daemon)
      with cluster.small_disks():
        done = runs.Chaos(script, cluster, processes, options.rate, environment, print_line).go()
        processes.end_all()
    runs.judge_machine(done, lab, shared_before)
  return done


def main() -> int:
  options = parse_arguments(sys.argv[1:])
  folder = pathlib.Path(tempfile.mkdtemp(prefix="r2cc-chaos-", dir="/tmp"))
  try:
    script = script_of(options)
    if options.print:
      print(scripts.write(script), end="")
      return 0
    if options.guest and not in_guest.is_inside():
      return in_guest.run(sys.argv[1:], script.seconds, options.out)
    if (reason := namespaces.missing_feature()) is not None:
      raise LabError(f"needs root: {reason}")
    if options.out is not None:
      options.out.mkdir(parents=True, exist_ok=True)
      (options.out / "script.jsonl").write_text(scripts.write(script), encoding="utf-8")
    done = run(options, script, folder)
  except (LabError, GuestError, ValueError) as error:
    print_line(f"chaos: {error}")
    return 1
  except EndedBySignal as ended:
    print_line(f"chaos: ended by {ended}; everything it started is gone")
    return ended.exit_code
  finally:
    if options.keep_logs is not None:
      keep_logs(folder, options.keep_logs)
    shutil.rmtree(folder, ignore_errors=True)
  if options.out is not None:
    runs.write_reports(done, options.out)
  print(done.markdown())
  if options.json:
    print(json.dumps(done.json_object()))
  for line in done.problems():
    print_line(line)
  if not done.passed():
    print_line(f"chaos: seed {script.seed} did not pass; --faults with the script that --out leaves does the same again, "
               "and so do the same flags")
  return 0 if done.passed() else 1


if __name__ == "__main__":
  sys.exit(main())
