"""r2cc-observe: what producers there are, what they say, whether files are whole, whether ranks agree."""

import argparse
import json
import os
import signal
import sys

from . import _files
from . import _library
from . import _read

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


def _hashes(source, rank):
  """step (or what its tag `iteration` says) -> tap -> hashes."""
  result = {}
  reader = _read.read(source, rank=rank, register=False, follow=False)
  for step in reader.steps():
    key = step.tags["iteration"].numbers()[0] if "iteration" in step.tags else step.number
    hashes = {name: value.numbers()[0] for name, value in step.taps.items() if name.rpartition(":")[2].partition("@")[0] == "hash"}
    if hashes:
      result[key] = hashes
  return result


def _agree(arguments):
  ranks = []
  for source in arguments.sources:
    if os.path.isdir(source):
      ranks += [(f"rank {one.rank} of {source}", source, one.rank) for one in _files.manifests(source)]
    else:
      ranks += [(f"rank {one.rank} of {source}", source, one.rank) for one in _library.find(source)]
  if len(ranks) < 2:
    raise _library.Error(f"{len(ranks)} ranks: there is nobody to compare with")
  hashes = [(label, _hashes(source, rank)) for label, source, rank in ranks]
  shared = set.intersection(*(set(one) for _, one in hashes))
  compared = 0
  for step in sorted(shared):
    names = [tuple(sorted(one[step])) for _, one in hashes]
    if len(set(names)) > 1:
      raise _library.Error(f"step {step}: the ranks do not have the same hash taps: their layouts are unlike")
    for name in names[0]:
      compared += 1
      values = {}
      for label, one in hashes:
        values.setdefault(one[step][name], []).append(label)
      if len(values) == 1:
        continue
      most = max(len(labels) for labels in values.values())
      blamed = [label for labels in values.values() if len(labels) < most or 2 * most <= len(hashes) for label in labels]
      print(f"step {step}: {name}: {', '.join(blamed)} {'differs' if len(blamed) == 1 else 'differ'}")
      return 1
  if compared == 0:
    raise _library.Error("no step that all ranks have holds a hash tap: nothing was compared")
  print(f"{len(hashes)} ranks agree: {len(shared)} steps, {compared} hashes")
  return 0


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
  command("agree", _agree, "compare the hash taps of ranks; exit 1 names step, point and rank").add_argument(
      "sources", nargs="+", metavar="RUN|FOLDER")
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
