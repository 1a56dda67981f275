"""How soon one node's fault is in every other node's plan, with etcd as the only way between them: real daemons, a real etcd, one machine.

./bazelw run //tests/etcd:nodes -- --nodes 64 --faults 10 --json
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from deploy.drill.rig.binaries import built_file
from deploy.drill.rig.processes import Processes, wait_until

ETCD = "/usr/bin/etcd"
PATIENCE_S = 120


def free_port() -> int:
  with socket.create_server(("127.0.0.1", 0)) as listening:
    return listening.getsockname()[1]


def percentile(values: list[float], share: float) -> float:
  """The smallest value that at least this share of all does not exceed."""
  return sorted(values)[math.ceil(len(values) * share) - 1]


class Nodes:
  """The daemons, n0 to n(count-1), and their etcd."""

  def __init__(self, folder: pathlib.Path, processes: Processes, count: int):
    self.folder = folder
    self.count = count
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    processes.start("etcd", [ETCD, "--name", "one", "--data-dir", str(folder / "etcd"), "--listen-client-urls", client,
                             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                             "--initial-cluster", f"one={peer}"])
    self.daemons = []
    for node in range(count):
      config = folder / f"n{node}.textproto"
      config.write_text(f'node: "n{node}"\nlisten: "127.0.0.1:0"\nnics {{ name: "rail0" address: "127.64.{node}.1" }}\n'
                        f'store {{ etcd_endpoints: "{client.removeprefix("http://")}" }}\n', encoding="ascii")
      self.daemons.append(processes.start(f"n{node}", [str(built_file("daemon/r2ccd")), "--config", str(config), "--run_dir",
                                                       str(folder / f"run{node}"), "--log_level", "warning"]))

  def ask(self, node: int, *words: str) -> str:
    return subprocess.run([built_file("client/r2ccctl"), "--run_dir", self.folder / f"run{node}", "-o", "json", *words],
                          capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout

  def known_to(self, node: int) -> int:
    status = self.ask(node, "status")
    return len(json.loads(status).get("nodes", [])) if status else 0

  def planned_ns(self, node: int, words: str, after_ns: int) -> int | None:
    """When `node` published a plan that says `words`, by the machine's CLOCK_MONOTONIC."""
    for line in self.ask(node, "events").splitlines():
      event = json.loads(line)
      if event["kind"] == "plan-published" and words in event["message"] and int(event["monotonic_ns"]) >= after_ns:
        return int(event["monotonic_ns"])
    return None

  def spread_ms(self, subject: int, action: str, word: str) -> list[float]:
    """Has the operator act on a NIC; how long after its own daemon's plan each other node had one that says so."""
    before_ns = time.monotonic_ns()
    self.ask(subject, action, f"n{subject}/rail0")
    found: dict[int, int] = {}

    def all_have_it() -> bool:
      for node in range(self.count):
        if node not in found and (when := self.planned_ns(node, f" n{subject}/rail0 {word}", before_ns)) is not None:
          found[node] = when
      return len(found) == self.count

    if not wait_until(all_have_it, PATIENCE_S, every_s=0.2):
      raise SystemExit(f"{self.count - len(found)} nodes never heard of n{subject}")
    return [(when - found[subject]) / 1e6 for node, when in found.items() if node != subject]

  def memory_mib(self) -> list[float]:
    pages = [int(pathlib.Path(f"/proc/{daemon.pid}/statm").read_text(encoding="ascii").split()[1]) for daemon in self.daemons]
    return [count * os.sysconf("SC_PAGE_SIZE") / 2**20 for count in pages]

  def processor_s(self) -> float:
    """Of all daemons together, since they began."""
    total = 0
    for daemon in self.daemons:
      fields = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()
      total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(nodes: Nodes, faults: int, idle_s: float) -> dict[str, float | int]:
  if not wait_until(lambda: all(nodes.known_to(node) == nodes.count for node in range(nodes.count)), PATIENCE_S, every_s=1.0):
    raise SystemExit("the daemons do not find each other through etcd: " + nodes.daemons[0].last_words())
  print(f"{nodes.count} daemons know each other; {idle_s:.0f} s without a fault", file=sys.stderr)
  used_s, began_s = nodes.processor_s(), time.monotonic()
  time.sleep(idle_s)
  idle_share = (nodes.processor_s() - used_s) / (time.monotonic() - began_s) / nodes.count
  spreads: list[float] = []
  for fault in range(faults):
    subject = fault % nodes.count
    print(f"fault {fault + 1} of {faults}", file=sys.stderr)
    spreads += nodes.spread_ms(subject, "fail-nic", "FAILED")
    nodes.spread_ms(subject, "restore-nic", "HEALTHY")
  return {"nodes": nodes.count, "faults": faults, "plan_to_plan_ms_p50": round(statistics.median(spreads), 3),
          "plan_to_plan_ms_p99": round(percentile(spreads, 0.99), 3), "plan_to_plan_ms_max": round(max(spreads), 3),
          "idle_processor_share_per_daemon": round(idle_share, 5), "memory_mib_per_daemon_max": round(max(nodes.memory_mib()), 1)}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--nodes", type=int, default=64)
  parser.add_argument("--faults", type=int, default=10)
  parser.add_argument("--idle-s", type=float, default=20)
  parser.add_argument("--json", action="store_true", help="one JSON object, and nothing else, on standard output")
  options = parser.parse_args()
  if not 2 <= options.nodes <= 255 or options.faults < 1:
    parser.error("--nodes is 2 to 255, --faults at least 1")
  if shutil.which(ETCD) is None:
    raise SystemExit(f"there is no {ETCD}: ./bazelw installs it")
  # In /tmp: the path of a Unix socket has room for 107 bytes.
  with tempfile.TemporaryDirectory(prefix="r2cc-etcd-", dir="/tmp") as name, Processes(pathlib.Path(name)) as processes:
    result = measure(Nodes(pathlib.Path(name), processes, options.nodes), options.faults, options.idle_s)
  print(json.dumps(result) if options.json else "\n".join(f"{key:34} {value}" for key, value in result.items()))


if __name__ == "__main__":
  main()
