"""iperf3 as the limit: what plain TCP streams move on the same addresses, one stream a rail."""

import json
import pathlib
import tempfile
from typing import Any, Mapping, Sequence

from testing.lab.processes import Processes, wait_until
from testing.lab.loopback import LoopbackLab

_START_S = 10.0
_END_S = 15.0


class LimitFailed(Exception):
  """iperf3 did not run; the text is one line for a person."""


def received_gbps(report: Mapping[str, Any]) -> float:
  """Of a client's JSON object. Pure."""
  if "error" in report:
    raise LimitFailed(f"iperf3: {report['error']}")
  return float(report["end"]["sum_received"]["bits_per_second"]) / 1e9


def limit_gbps(addresses: Sequence[str], both_ways: bool, seconds: float) -> float:
  """What one stream per address moves in one direction, all at once; with `both_ways` another stream runs against each, and the figure is
  the mean of both directions, which is what a ring all_reduce of two ranks loads. Each stream has a client and a server process."""
  ports = LoopbackLab()
  with tempfile.TemporaryDirectory() as folder, Processes(pathlib.Path(folder)) as processes:
    targets = [address for address in addresses for _ in range(2 if both_ways else 1)]
    free: set[int] = set()
    while len(free) < len(targets):
      free.add(ports.free_port(0))
    streams = [(address, str(port)) for address, port in zip(targets, sorted(free))]
    servers = [processes.start(f"server{index}", ["iperf3", "-s", "-1", "-B", address, "-p", port, "--forceflush"])
               for index, (address, port) in enumerate(streams)]
    for server in servers:
      if not wait_until(lambda: "listening" in server.output(), _START_S) or not server.is_alive():
        raise LimitFailed(f"iperf3 -s did not start: {server.output()} {server.last_lines()}")
    clients = [processes.start(f"client{index}", ["iperf3", "-c", address, "-B", address, "-p", port, "-t", f"{seconds:g}", "-J"])
               for index, (address, port) in enumerate(streams)]
    total_gbps = 0.0
    for client in clients:
      if client.wait(seconds + _END_S) is None:
        raise LimitFailed(f"iperf3 -c did not end within {seconds + _END_S:g} s")
      try:
        total_gbps += received_gbps(json.loads(client.output()))
      except (ValueError, KeyError) as error:
        raise LimitFailed(f"iperf3 -c left no figure: {client.output()[-200:]} {client.last_lines()}") from error
    return total_gbps / (2 if both_ways else 1)
