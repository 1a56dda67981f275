"""r2cc-observe: what producers there are, what they say, whether files are whole, whether ranks agree."""

import argparse
import collections
import json
import os
import shlex
import signal
import subprocess
import sys
import time

from . import _files
from . import _library
from . import _read

_REPORT_S = 30  # that r2ccctl has
_LIVES = ("open", "closed", "failed")


def _runs(pattern):
  return [{"run": one.run.decode(), "rank": one.rank, "pid": one.pid, "held_by": one.holder_pid,
           "state": "died" if one.life == 0 and not one.alive else _LIVES[min(one.life, 2)], "cause": one.cause.decode("ascii", "replace"),
           "ring_bytes": one.ring_bytes, **{name: value for name, value in one.counts.as_dict().items()
                                            if name not in ("missed", "lost_to_files")}}
          for one in _library.find(pattern)]


def _ls(arguments):
  runs = _runs(arguments.run)
  if arguments.output == "json":
    print(json.dumps(runs, indent=2))
  elif arguments.output == "prometheus":
    for name, text in (("steps", "Executions of the model."), ("records", "Steps that were taken."),
                       ("dropped_device", "Steps that found no room on the device."),
                       ("dropped_host", "Steps that found no room in the host's ring."), ("unwanted", "Steps that nobody wanted."),
                       ("cut_off", "Readers that were cut off.")):
      print(f"# HELP r2cc_taps_{name}_total {text}\n# TYPE r2cc_taps_{name}_total counter")
      for run in runs:
        print(f'r2cc_taps_{name}_total{{run="{run["run"]}",rank="{run["rank"]}"}} {run[name]}')
  else:
    print(f"{'RUN':<24} {'RANK':>4} {'PID':>8} {'STATE':<7} {'STEPS':>10} {'RECORDS':>10} {'DROPPED':>8} {'CUT OFF':>7}")
    for run in runs:
      print(f"{run['run']:<24} {run['rank']:>4} {run['pid']:>8} {run['state']:<7} {run['steps']:>10} {run['records']:>10} "
            f"{run['dropped_device'] + run['dropped_host']:>8} {run['cut_off']:>7}")
  return 0


def _shown(value):
  numbers = value.numbers()
  text = ", ".join(f"{one.least:.4g}..{one.greatest:.4g} mean {one.mean:.4g} NaN {one.nans}" if isinstance(one, _read.Stats)
                   else f"{one:.6g}" if isinstance(one, float) else str(one) for one in numbers[:4])
  return f"{value.dtype}{list(value.shape)} {text}" + (", ..." if len(numbers) > 4 else "")


def _print(item):
  if isinstance(item, _read.Gap):
    print(f"gap from step {item.first}: {item.steps} steps; dropped on the device {item.dropped_device}, on the host {item.dropped_host}, "
          f"not wanted {item.unwanted}, missed here {item.missed}", flush=True)
    return
  print(f"step {item.number}")
  for prefix, values in (("#", item.tags), ("", item.taps)):
    for name, value in values.items():
      print(f"  {prefix}{name} {_shown(value)}")
  sys.stdout.flush()


def _tail(arguments):
  with _read.Live(arguments.run, arguments.rank, True, True, arguments.timeout) as reader:
    for item in reader:
      _print(item)
  return 0


def _dump(arguments):
  source = _read.read(arguments.source, rank=arguments.rank, register=False, follow=False)
  items = list(source)
  steps = [at for at, item in enumerate(items) if isinstance(item, _read.Step)]
  for item in items[steps[-arguments.last] if arguments.last and len(steps) >= arguments.last else 0:]:
    _print(item)
  return 0


def _verify(arguments):
  for line in _files.verify(arguments.folder, arguments.rank):
    print(line)
  return 0


def _hold(arguments):
  """Keeps the memory open until a signal: then it goes, unless somebody else holds it."""
  readers = []
  for one in _library.find(arguments.run):
    readers.append(_read.Live(arguments.run, one.rank, False, False, None))
  if not readers:
    raise _library.Error(f"run {arguments.run}: no process of this user has it")
  print(f"holding {arguments.run}, {len(readers)} producers, as process {os.getpid()}; a signal ends it", flush=True)
  signal.sigwait({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
  return 0


def _hashes_of(step):
  """The step (or what its tag `iteration` states), and tap -> hash."""
  key = step.tags["iteration"].numbers()[0] if "iteration" in step.tags else step.number
  return key, {name: value.numbers()[0] for name, value in step.taps.items() if name.rpartition(":")[2].partition("@")[0] == "hash"}


class _Disagreement(collections.namedtuple("_Disagreement", "step point ranks sources")):
  """Ranks that differ: with three ranks or more the minority. `sources`: the runs or folders that were compared."""
  __slots__ = ()

  def __str__(self):
    return f"step {self.step}: {self.point}: {', '.join(self.ranks)} {'differs' if len(self.ranks) == 1 else 'differ'}"

  def report(self, command):
    """Makes it an event of r2ccd, or prints one line."""
    try:
      arguments = shlex.split(command) + ["report-disagreement", f"--step={self.step}", f"--point={self.point}"]
      arguments += [f"--rank={rank}" for rank in self.ranks] + ["--", ", ".join(self.sources)]
      done = subprocess.run(arguments, capture_output=True, text=True, timeout=_REPORT_S, check=False)
      wrong = None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[0]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
      wrong = str(error)
    if wrong is not None:
      print(f"r2cc-observe: the disagreement is not reported to r2ccd: {wrong}", file=sys.stderr)


class _Comparison:
  """Of the hashes that ranks have, step by step. `labels`: the ranks' names."""

  def __init__(self, labels, sources):
    self._labels, self._sources, self.steps, self.hashes = labels, sources, 0, 0

  def differs(self, key, of_rank):
    """What differs first. None: they agree."""
    if len({tuple(sorted(one)) for one in of_rank}) > 1:
      raise _library.Error(f"step {key}: the ranks do not have the same hash taps: their layouts are unlike")
    self.steps += 1
    for name in sorted(of_rank[0]):
      self.hashes += 1
      values = {}
      for label, one in zip(self._labels, of_rank):
        values.setdefault(one[name], []).append(label)
      if len(values) == 1:
        continue
      most = max(len(labels) for labels in values.values())
      blamed = [label for labels in values.values() if len(labels) < most or 2 * most <= len(of_rank) for label in labels]
      return _Disagreement(key, name, blamed, self._sources)
    return None

  def conclude(self):
    if self.hashes == 0:
      raise _library.Error("no step that all ranks have holds a hash tap: nothing was compared")
    print(f"{len(self._labels)} ranks agree: {self.steps} steps, {self.hashes} hashes")
    return 0


def _agree(arguments):
  ranks = []
  for source in arguments.sources:
    if os.path.isdir(source):
      if arguments.follow:
        raise _library.Error(f"{source} is a folder: --follow is for runs of this machine")
      ranks += [(f"rank {one.rank} of {source}", source, one.rank) for one in _files.manifests(source)]
    else:
      ranks += [(f"rank {one.rank} of {source}", source, one.rank) for one in _library.find(source)]
  if len(ranks) < 2:
    raise _library.Error(f"{len(ranks)} ranks: there is nobody to compare with")
  comparison = _Comparison([label for label, _, _ in ranks], list(dict.fromkeys(arguments.sources)))
  found = (_follow if arguments.follow else _compare)(ranks, comparison)
  if found is None:
    return comparison.conclude()
  print(found, flush=True)
  if arguments.report:
    found.report(arguments.r2ccctl)
  return 1


def _compare(ranks, comparison):
  """What is there now: the first disagreement, or None."""
  hashes = []
  for _, source, rank in ranks:
    of_steps = dict(map(_hashes_of, _read.read(source, rank=rank, register=False, follow=False).steps()))
    hashes.append({key: one for key, one in of_steps.items() if one})
  for key in sorted(set.intersection(*map(set, hashes))):
    found = comparison.differs(key, [one[key] for one in hashes])
    if found is not None:
      return found
  return None


def _follow(ranks, comparison):
  """The same while ranks run, until the first disagreement or until all have ended. It holds up no rank: what it is too late for is not
  compared. What it keeps is what the fastest rank is ahead."""
  readers = [_read.Live(source, rank, False, False, None) for _, source, rank in ranks]
  waiting, latest = {}, [-1] * len(readers)  # step -> hashes by rank
  while True:
    moved = False
    for place, reader in enumerate(readers):
      for step in reader.steps():
        moved = True
        key, hashes = _hashes_of(step)
        latest[place] = key
        if not hashes:
          continue
        of_rank = waiting.setdefault(key, [None] * len(readers))
        of_rank[place] = hashes
        if None not in of_rank:
          del waiting[key]
          found = comparison.differs(key, of_rank)
          if found is not None:
            return found
    # A step that all are past will not be complete any more.
    for key in [key for key in waiting if key <= min(latest)]:
      del waiting[key]
    if not moved and all(reader.ended for reader in readers):
      return None
    if not moved:
      time.sleep(0.005)


class _Version(argparse.Action):
  """Asks the library, which --help does not need."""

  def __call__(self, parser, namespace, values, option_string=None):
    try:
      print(_library.version())
    except (_library.Error, OSError) as error:
      parser.exit(2, f"{parser.prog}: {error}\n")
    parser.exit()


def _parser():
  parser = argparse.ArgumentParser(prog="r2cc-observe", description=__doc__)
  parser.add_argument("--version", action=_Version, nargs=0, help="print release, revision and the version of records")
  commands = parser.add_subparsers(dest="command", required=True)

  def command(name, function, text):
    added = commands.add_parser(name, help=text, description=text)
    added.set_defaults(function=function)
    return added

  listed = command("ls", _ls, "the producers of this user on this machine")
  listed.add_argument("run", nargs="?")
  listed.add_argument("-o", "--output", choices=("text", "json", "prometheus"), default="text")
  tailed = command("tail", _tail, "each record and gap as it comes")
  tailed.add_argument("run")
  tailed.add_argument("--timeout", type=float, help="end after so many seconds without anything")
  dumped = command("dump", _dump, "what a ring or a folder holds now")
  dumped.add_argument("source", metavar="RUN|FOLDER")
  dumped.add_argument("--last", type=int, default=0, help="of the records the last N")
  verified = command("verify", _verify, "whether a folder is as it was written, every gap derived anew")
  verified.add_argument("folder")
  for with_rank in (tailed, dumped, verified):
    with_rank.add_argument("--rank", type=int)
  command("hold", _hold, "keep a ring beyond its job's end").add_argument("run")
  agreed = command("agree", _agree, "compare the hash taps of ranks; exit 1 names step, point and rank")
  agreed.add_argument("sources", nargs="+", metavar="RUN|FOLDER")
  agreed.add_argument("--follow", action="store_true", help="compare runs of this machine until ranks disagree or all have ended")
  agreed.add_argument("--report", action="store_true", help="make a disagreement an event of this machine's r2ccd: needs its role OPERATE")
  agreed.add_argument("--r2ccctl", metavar="COMMAND", default="r2ccctl",
                      help="with --report: the program that reports, and its options (default: %(default)s)")
  return parser


def main(arguments=None):
  """0: all is well; 1: ranks or files are not as they should be; 2: it could not be done."""
  parsed = _parser().parse_args(arguments)
  try:
    if parsed.command == "hold":
      signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    return parsed.function(parsed)
  except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0
  except KeyboardInterrupt:
    return 0
  except (_library.Error, OSError) as error:
    print(f"r2cc-observe: {error}", file=sys.stderr)
    return 1 if parsed.command == "verify" else 2
