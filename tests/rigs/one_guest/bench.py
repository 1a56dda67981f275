"""What one soft-RoCE rail in a guest carries: bare writes with immediate, perftest's ib_send_bw, and the plugin. Judges nothing.

The plugin's sendrecv goes both ways at once, and both together count: the guest has one processor, which all bytes wait for.
"""

import argparse
import pathlib
import statistics
import sys

from testing.lab.binaries import built_file
from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.guest import guest

_MESSAGE_BYTES = 524288  # as in write_loop.cc
_MESSAGES = 100
_MIB = 1.048576
# Each prints one number. ib_send_bw's two ends find each other over the loopback interface.
_SEND_BW = f"ib_send_bw -s {_MESSAGE_BYTES} -n {_MESSAGES} -t 8 -r 16 -F --output=bandwidth"
# One message is as long as theirs, and as many are timed.
_BYTES = 4194304
_ITERATIONS = _MESSAGES * _MESSAGE_BYTES // (2 * _BYTES)
_SCRIPT = f"""
rank() {{
  R2CC_NODE=$1 R2CC_RAILS=$2 R2CC_TRANSPORT=verbs R2CC_OOB_IFNAME=127.0.0.1 R2CC_ATTACH=none PERF sendrecv --plugin PLUGIN --rank $1 \\
    --nranks 2 --root 127.0.0.1:$((7500 + round)) -b {_BYTES} -n {_ITERATIONS} -w 1 -c 0 --slot-checks 0 --progress 0 --json
}}
for ((round = 0; round < ROUNDS; round++)); do
  for how in yield wait; do echo write_$how $(LOOP $how {_MESSAGES}) || exit 1; done
  {_SEND_BW} -d rxe0b > /dev/null &
  until ss -Hltn 'sport = 18515' | grep -q .; do sleep 0.1; done  # it listens
  echo ib_send_bw $({_SEND_BW} -d rxe0a 127.0.0.1) || exit 1
  wait
  rank 1 v0b > /dev/null &
  echo plugin $(rank 0 v0a | grep -o '"busbw_gbps":[0-9.]*' | cut -d: -f2) || exit 1
  wait
done
"""
_NAMES = {
    "write_yield": "writes with immediate, both ends ask without pause",
    "write_wait": "writes with immediate, both ends sleep when idle",
    "ib_send_bw": "ib_send_bw",
    "plugin": "r2cc-perf sendrecv, both ways together",
}
# To MB/s. ib_send_bw says MB and means MiB; r2cc-perf has Gbit/s of one way.
_UNITS = {"ib_send_bw": _MIB, "plugin": 2 * 1000 / 8}


def figures_of(output: str) -> dict[str, list[float]]:
  """MB/s (1e6 B/s) by name, from the lines "NAME NUMBER" of the guest; other lines are left out."""
  values: dict[str, list[float]] = {name: [] for name in _NAMES}
  for line in output.splitlines():
    name, _, value = line.partition(" ")
    if name in values:
      try:
        values[name].append(float(value) * _UNITS.get(name, 1))
      except ValueError:
        continue  # counts as missing
  return values


def table(values: dict[str, list[float]]) -> str:
  """Median, least and most of each."""
  rounds = len(next(iter(values.values())))
  text = f"{_MESSAGES} messages of {_MESSAGE_BYTES} bytes, MB/s (1e6 B/s): median of {rounds}, least, most\n"
  for name, title in _NAMES.items():
    text += f"{statistics.median(values[name]):8.1f} {min(values[name]):8.1f} {max(values[name]):8.1f}  {title}\n"
  best = max(statistics.median(values[name]) for name in ("write_yield", "write_wait"))
  return text + f"the plugin has {statistics.median(values['plugin']) / best:.2f} of the better bare loop\n"


def main() -> int:
  parser = argparse.ArgumentParser(prog="bench", description=__doc__)
  parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each, in turn; the median counts (5)")
  options = parser.parse_args()
  reason = guest.missing_feature()
  if reason is not None:
    print(f"bench: no guest can run here: {reason}", file=sys.stderr)
    return 1
  loop = built_file("tests/rigs/one_guest/write_loop")
  script = _SCRIPT.replace("ROUNDS", str(options.rounds)).replace("LOOP", str(pathlib.Path(loop).resolve()))
  for word, file in (("PERF", "tools/perf/r2cc-perf"), ("PLUGIN", "netplugin/libnccl-net-r2cc.so")):
    script = script.replace(word, str(pathlib.Path(built_file(file)).resolve()))
  try:
    with signals_unwind(), guest.Guest(rails=1) as machine:
      result = machine.run(["bash", "-c", script], limit_s=120 * options.rounds)
  except guest.GuestError as error:
    print(f"bench: {error}", file=sys.stderr)
    return 1
  except EndedBySignal as ended:
    return ended.exit_code
  values = figures_of(result.output)
  if result.status != 0 or any(len(of) != options.rounds for of in values.values()):
    print(f"bench: a command failed in the guest, status {result.status}", file=sys.stderr)
    return 1
  print(table(values), end="")
  return 0


if __name__ == "__main__":
  sys.exit(main())
