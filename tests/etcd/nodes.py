"""How soon the fault of one node, or of a rack, is in every other node's plan, with etcd as the only way between them: real daemons, a
real etcd, one machine. With --processes each daemon has as many attached processes, which must see the fault, too.

./bazelw run //tests/etcd:nodes -- --nodes 64 --faults 10 --processes 64 --json
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Sequence

from testing.lab.binaries import built_file
from testing.lab.loopback import free_port
from testing.lab.processes import ManagedProcess, Processes, wait_until
from tests.bench import machine
from tests.bench.detect_figures import Event, page_ns, state_of
from tests.bench.fault_figures import percentile

ETCD = "/usr/bin/etcd"
PATIENCE_S = 120


class Nodes:
  """The daemons, n0 to n(count-1), and their etcd."""

  def __init__(self, folder: pathlib.Path, processes: Processes, count: int):
    self.folder = folder
    self.count = count
    client, peer = (f"http://127.0.0.1:{free_port('127.0.0.1')}" for _ in range(2))
    processes.start("etcd", [ETCD, "--name", "one", "--data-dir", str(folder / "etcd"), "--listen-client-urls", client,
                             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                             "--initial-cluster", f"one={peer}"])
    self.daemons: list[ManagedProcess] = []
    self.crowds: list[subprocess.Popen[str]] = []
    for node in range(count):
      config = folder / f"n{node}.textproto"
      config.write_text(f'node: "n{node}"\nlisten: "127.0.0.1:0"\nnics {{ name: "rail0" address: "127.64.{node}.1" }}\n'
                        f'store {{ etcd_endpoints: "{client.removeprefix("http://")}" }}\ninsecure: true\n'
                        "drills { allow: true }\nhttp { off: true }\n", encoding="ascii")
      self.daemons.append(processes.start(f"n{node}", [str(built_file("daemon/r2ccd")), "--config", str(config), "--run_dir",
                                                       str(folder / f"run{node}"), "--state_dir", str(folder / f"kept{node}"),
                                                       "--log_level", "warning"]))

  def attach(self, each: int) -> None:
    """So many processes to each daemon."""
    for node in range(self.count):
      socket_path = self.folder / f"run{node}" / "attach.sock"
      self.crowds.append(subprocess.Popen([str(built_file("tests/etcd/attached")), str(socket_path), f"127.64.{node}.1", str(each),
                                           str(self.count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for node, crowd in enumerate(self.crowds):
      if self.line_of(crowd) != "ready":
        raise SystemExit(f"not all of {each} processes were attached to n{node}: {self.daemons[node].last_lines()}")

  @staticmethod
  def line_of(crowd: "subprocess.Popen[str]") -> str:
    assert crowd.stdout is not None
    return crowd.stdout.readline().strip()

  def seen_ms(self, subject: int) -> list[float]:
    """Fails a NIC; how long after its own daemon's plan the last process of each node had seen it. Mends it."""
    before_ns = time.monotonic_ns()
    self.act([subject], "fail-nic", "--force")
    last = []
    for crowd in self.crowds:
      assert crowd.stdin is not None
      crowd.stdin.write(f"{subject} {before_ns}\n")
      crowd.stdin.flush()
    for node, crowd in enumerate(self.crowds):
      last.append(int(self.line_of(crowd) or -1))
      if last[-1] < 0:
        raise SystemExit(f"not every process of n{node} saw that the NIC of n{subject} has failed")
    plan_ns = page_ns(self.events(subject), f"n{subject}/rail0", before_ns)
    if plan_ns is None:
      raise SystemExit(f"n{subject} has no plan without its NIC")
    self.mend([subject])
    return [(when - plan_ns) / 1e6 for when in last]

  def close(self) -> None:
    for crowd in self.crowds:
      crowd.kill()
      crowd.wait()

  def request(self, node: int, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([built_file("client/r2ccctl"), "--run_dir", self.folder / f"run{node}", "-o", "json", *words],
                          capture_output=True, text=True, check=False, timeout=PATIENCE_S)

  def ask(self, node: int, *words: str) -> str:
    """Its answer; nothing if it did not answer in time, as one of so many daemons on one machine."""
    return self.request(node, *words).stdout

  def known_to(self, node: int) -> int:
    status = self.ask(node, "status")
    return len(json.loads(status).get("nodes", [])) if status else 0

  def events(self, node: int) -> list[Event]:
    return [json.loads(line) for line in self.ask(node, "events").splitlines()]

  def act(self, subjects: Sequence[int], *action: str) -> None:
    """Has the operator act on a NIC of each of them, at once, and again where the daemon does not answer in time."""
    def until_done(subject: int) -> None:
      if not wait_until(lambda: self.request(subject, *action, f"n{subject}/rail0").returncode == 0, PATIENCE_S):
        raise SystemExit(f"n{subject} does not carry out {' '.join(action)}: {self.daemons[subject].last_lines()}")

    with concurrent.futures.ThreadPoolExecutor(max_workers=len(subjects)) as pool:
      list(pool.map(until_done, subjects))

  def spread_ms(self, subjects: Sequence[int]) -> list[float]:
    """Fails a NIC of each at once; how long after its own daemon's plan each other node had one that says so. Mends them."""
    before_ns = time.monotonic_ns()
    self.act(subjects, "fail-nic", "--force")
    found: dict[tuple[int, int], int] = {}

    def all_have_it() -> bool:
      for node in range(self.count):
        missing = [subject for subject in subjects if (subject, node) not in found]
        events = self.events(node) if missing else []
        for subject in missing:
          if (when := page_ns(events, f"n{subject}/rail0", before_ns)) is not None:
            found[subject, node] = when
      return len(found) == len(subjects) * self.count

    if not wait_until(all_have_it, PATIENCE_S, every_s=0.2):
      raise SystemExit(f"{len(subjects) * self.count - len(found)} words of {len(subjects)} nodes never came")
    self.mend(subjects)
    return [(when - found[subject, subject]) / 1e6 for (subject, node), when in found.items() if node != subject]

  def mend(self, subjects: Sequence[int]) -> None:
    self.act(subjects, "restore-nic")

    def other() -> list[str]:
      return [f"n{node} calls n{subject}/rail0 {state}" for node in range(self.count) for events in [self.events(node)]
              for subject in subjects for state in [state_of(events, f"n{subject}/rail0")] if state != "HEALTHY"]

    if not wait_until(lambda: not other(), PATIENCE_S, every_s=0.2):
      raise SystemExit(f"not every node heard that {len(subjects)} NICs work again: {', '.join(other())}")

  def memory_mib_max(self) -> float:
    return max(machine.peak_memory_mib(daemon.pid) for daemon in self.daemons)

  def processor_s(self) -> float:
    """Of all daemons together, since they began."""
    return sum(machine.process_cpu_seconds(daemon.pid) for daemon in self.daemons)


def figures(name: str, spreads: list[float]) -> dict[str, float]:
  return {f"{name}_ms_p50": round(percentile(spreads, 0.5), 3), f"{name}_ms_p99": round(percentile(spreads, 0.99), 3),
          f"{name}_ms_max": round(max(spreads), 3)}


def measure(nodes: Nodes, faults: int, rack: int, idle_s: float, processes: int) -> dict[str, Any]:
  facts = machine.describe()
  if not wait_until(lambda: all(nodes.known_to(node) == nodes.count for node in range(nodes.count)), PATIENCE_S, every_s=1.0):
    raise SystemExit("the daemons do not find each other through etcd: " + nodes.daemons[0].last_lines())
  if processes:
    nodes.attach(processes)
  print(f"{nodes.count} daemons know each other, and each has {processes} processes; {idle_s:.0f} s without a fault", file=sys.stderr)
  used_s, began_s = nodes.processor_s(), time.monotonic()
  time.sleep(idle_s)
  idle_share = (nodes.processor_s() - used_s) / (time.monotonic() - began_s) / nodes.count
  one: list[float] = []
  many: list[float] = []
  seen: list[float] = []
  for fault in range(faults):
    print(f"fault {fault + 1} of {faults}: one node, then {rack} at once", file=sys.stderr)
    one += nodes.spread_ms([fault % nodes.count])
    many += nodes.spread_ms([(fault + node) % nodes.count for node in range(rack)])
    seen += nodes.seen_ms(fault % nodes.count) if processes else []
  return {"nodes": nodes.count, "faults": faults, "rack": rack, "processes": processes * nodes.count} | (
      figures("plan_to_last_process", seen) if seen else {}) | figures("plan_to_plan", one) | figures("rack_plan_to_plan", many) | {
      "idle_processor_share_per_daemon": round(idle_share, 5), "memory_peak_mib_per_daemon_max": round(nodes.memory_mib_max(), 1),
      "machine": facts}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--nodes", type=int, default=64)
  parser.add_argument("--faults", type=int, default=10)
  parser.add_argument("--rack", type=int, default=8, help="nodes that lose a NIC at the same time (default: %(default)s)")
  parser.add_argument("--processes", type=int, default=0, help="attached to each daemon (default: %(default)s)")
  parser.add_argument("--idle-s", type=float, default=20)
  parser.add_argument("--json", action="store_true", help="one JSON object, and nothing else, on standard output")
  options = parser.parse_args()
  if not 2 <= options.nodes <= 255 or options.faults < 1 or not 1 <= options.rack <= options.nodes or options.processes < 0:
    parser.error("--nodes is 2 to 255, --faults at least 1, --rack 1 to --nodes, --processes not negative")
  if shutil.which(ETCD) is None:
    raise SystemExit(f"there is no {ETCD}: ./bazelw installs it")
  # In /tmp: the path of a Unix socket has room for 107 bytes.
  with tempfile.TemporaryDirectory(prefix="r2cc-etcd-", dir="/tmp") as name, Processes(pathlib.Path(name)) as processes:
    nodes = Nodes(pathlib.Path(name), processes, options.nodes)
    try:
      result = measure(nodes, options.faults, options.rack, options.idle_s, options.processes)
    finally:
      nodes.close()
  print(json.dumps(result) if options.json else "\n".join(f"{key:34} {value}" for key, value in result.items()))


if __name__ == "__main__":
  main()
