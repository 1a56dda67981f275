"""Runs one r2ccd per node and r2cc-perf jobs across them, all real processes of a Lab."""

import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from typing import Any, Sequence

from testing.lab.lab import Lab, LabError, RailId
from testing.lab.loopback import LoopbackLab
from testing.lab.processes import ManagedProcess, Processes, clean_environment, wait_until
from testing.lab.traces import TraceFollower

PEER_PORT = 7460
HTTP_PORT = 9460
_CTL_TIMEOUT_S = 10
_READY_TIMEOUT_S = 15


@dataclasses.dataclass(frozen=True)
class Binaries:
  """The programs under test."""
  daemon: pathlib.Path
  ctl: pathlib.Path
  perf: pathlib.Path
  plugin: pathlib.Path

  def check(self) -> None:
    for name, path in vars(self).items():
      if not path.is_file():
        raise LabError(f"{name} {path} does not exist; build it, or name another")


@dataclasses.dataclass(frozen=True)
class JobOptions:
  """The options of one r2cc-perf run."""
  size: str = "64M"
  collective: str = "all_reduce"
  seconds_max: float = 120
  timeout_s: float = 60  # r2cc-perf's own limit on one collective
  environment: dict[str, str] = dataclasses.field(default_factory=dict)
  flags: tuple[str, ...] = ()  # more of r2cc-perf's
  plugins: tuple[pathlib.Path, ...] = ()  # one a rank, if they are not all the lab's


@dataclasses.dataclass
class Job:
  """Repeats a collective with one rank per node."""
  name: str
  ranks: list[ManagedProcess]
  follower: TraceFollower
  returned: list[int] = dataclasses.field(default_factory=list)  # by rank, characters of standard error that fresh_output() has returned

  def dead_rank(self) -> int | None:
    """A rank that has ended; None: all run."""
    return next((rank for rank, process in enumerate(self.ranks) if not process.is_alive()), None)

  def ask_to_stop(self) -> None:
    """Makes all ranks agree on a last iteration and report."""
    self.ranks[0].send(signal.SIGINT)

  def wait(self, timeout_s: float) -> bool:
    return wait_until(lambda: all(not process.is_alive() for process in self.ranks), timeout_s)

  def kill(self) -> None:
    for process in self.ranks:
      process.kill()

  def report(self) -> dict[str, Any]:
    """The JSON object that ends rank 0's output."""
    lines = self.ranks[0].output().strip().splitlines()
    try:
      report = json.loads(lines[-1])
      if not isinstance(report, dict):
        raise ValueError("not an object")
      return report
    except (IndexError, ValueError) as error:
      first = self.ranks[0]
      raise LabError(f"{self.name}: rank 0 ended with {first.returncode} and left no report: {first.last_lines()}") from error

  def fresh_output(self) -> str:
    """What the ranks have written to standard error since the last call."""
    texts = [process.errors() for process in self.ranks]
    returned, self.returned = self.returned or [0] * len(texts), [len(text) for text in texts]
    return "".join(text[begin:] for text, begin in zip(texts, returned))

  def failures(self) -> list[str]:
    """One line for each rank that failed."""
    return [f"{self.name}: rank {rank} ended with {process.returncode}: {process.last_lines()}"
            for rank, process in enumerate(self.ranks) if process.returncode != 0]


def grants_text(uid: int) -> str:
  """The grants of a lab's daemons. By default only root may run drills. Here the user that runs the lab may, too."""
  if uid == 0:
    return ""
  everybody, own = "roles: VIEW everyone: true", f'roles: VIEW roles: OPERATE roles: DRILL users: "{uid}"'
  return "\n".join(f"grants {{ {who}{nodes} }}" for who in (everybody, own) for nodes in ("", ' on_nodes: "*"'))


class Cluster:
  """Runs the daemons and jobs of one lab. `folder` must have a short path, because it holds Unix sockets. `tls`: the daemons identify each
  other by certificates."""

  def __init__(self, lab: Lab, binaries: Binaries, folder: pathlib.Path, processes: Processes, daemons: bool = True, tls: bool = False,
               http_everywhere: bool = False):
    self.lab, self.binaries, self.has_daemons = lab, binaries, daemons
    self._authority = folder / "ca" if tls else None
    self._folder, self._processes = folder, processes
    self._daemons: dict[int, ManagedProcess] = {}
    self._starts: dict[int, int] = {}
    self._killed: set[int] = set()
    self._http_everywhere = http_everywhere
    self._http = {node: lab.free_port(node) if lab.mode == "loopback" else HTTP_PORT for node in range(lab.nodes)}
    self._listen = {node: lab.free_port(node) if lab.mode == "loopback" else PEER_PORT for node in range(lab.nodes)}
    if isinstance(lab, LoopbackLab):
      lab.break_with(self.fail_nic, self.restore_nic)

  # Daemons.

  def run_dir(self, node: int) -> pathlib.Path:
    return self._folder / f"n{node}"

  def attach_socket(self, node: int) -> pathlib.Path:
    return self.run_dir(node) / "attach.sock"

  def http_port(self, node: int) -> int:
    """The port of the daemon's metrics: on the management address, or on loopback of the node's own network."""
    return self._http[node]

  def config_text(self, node: int) -> str:
    """r2cc.v1.DaemonConfig in text format."""
    lab = self.lab
    lines = [f'node: "n{node}"', f'listen: "{lab.management_address(node)}:{self._listen[node]}"']
    lines += [f'peers {{ node: "n{peer}" address: "{lab.management_address(peer)}:{self._listen[peer]}" }}'
              for peer in range(lab.nodes) if peer != node]
    rate = f" rate_bits_per_s: {round(lab.rate_gbps * 1e9 / lab.rails)}" if lab.rate_gbps else ""
    for rail in range(lab.rails):
      interface = f' interface: "rail{rail}"' if lab.mode == "namespaces" else ""
      lines.append(f'nics {{ name: "rail{rail}"{interface} address: "{lab.rail_address(RailId(node, rail))}"{rate} }}')
    # The lab's network is isolated: no other host reaches it even without certificates.
    trust = "insecure: true" if self._authority is None else f'tls {{ directory: "{self._authority / f"n{node}"}" }}'
    lines += ['store { embedded_node: "n0" }', trust, "drills { allow: true }", grants_text(os.geteuid())]
    if lab.mode == "loopback" or self._http_everywhere:  # on loopback the nodes are one machine
      lines.append(f'http {{ listen: "{lab.management_address(node)}:{self._http[node]}" }}')
    return "\n".join(lines).rstrip() + "\n"

  def _make_certificates(self, authority: pathlib.Path) -> None:
    """Makes an authority, and a directory of each node in it."""
    commands = [["init"], *(["issue", f"n{node}"] for node in range(self.lab.nodes))]
    for command in commands:
      argv = [str(self.binaries.ctl), "certs", *command, "--dir", str(authority)]
      done = subprocess.run(argv, capture_output=True, text=True, timeout=_CTL_TIMEOUT_S, check=False, env=clean_environment({}))
      if done.returncode != 0:
        raise LabError(f"r2ccctl certs {' '.join(command)}: {' '.join(done.stderr.split())}")

  def start_daemons(self) -> None:
    if self._authority is not None and not self._authority.exists():
      self._make_certificates(self._authority)
    for node in range(self.lab.nodes):
      self.start_daemon(node)
    for node in range(self.lab.nodes):
      self.wait_ready(node)

  def start_daemon(self, node: int) -> None:
    self.run_dir(node).mkdir(parents=True, exist_ok=True)
    config = self.run_dir(node) / "r2ccd.textproto"
    config.write_text(self.config_text(node), encoding="utf-8")
    self._starts[node] = self._starts.get(node, 0) + 1
    self._killed.discard(node)
    argv = [str(self.binaries.daemon), "--config", str(config), "--run_dir", str(self.run_dir(node)), "--state_dir",
            str(self.run_dir(node) / "kept")]
    self._daemons[node] = self._processes.start(f"r2ccd-n{node}-{self._starts[node]}", self.lab.command(node, argv))

  def daemon(self, node: int) -> ManagedProcess:
    return self._daemons[node]

  def kill_daemon(self, node: int) -> None:
    self._killed.add(node)
    self._daemons[node].kill()

  def crash_report(self, node: int) -> str | None:
    """One line if the daemon of `node` ended without a signal from here; None: it lives, or was killed on purpose."""
    process = self._daemons.get(node)
    if process is None or process.is_alive() or node in self._killed:
      return None
    return f"r2ccd of n{node} ended by itself with {process.returncode}: {process.last_lines(1)}"

  def wait_ready(self, node: int) -> None:
    """Waits until it answers and has met every live peer."""
    process = self._daemons[node]
    living = [peer for peer in self._daemons if peer != node and self._daemons[peer].is_alive()]

    def ready() -> bool:
      if not process.is_alive():
        raise LabError(f"r2ccd of n{node} ended with {process.returncode}: {process.last_lines()}")
      try:
        peers = self.ctl_json(node, "status").get("peers", [])
      except LabError:
        return False
      return sum(1 for peer in peers if peer.get("connected")) >= len(living)

    if not wait_until(ready, _READY_TIMEOUT_S, every_s=0.1):
      raise LabError(f"r2ccd of n{node} was not ready within {_READY_TIMEOUT_S} s: {process.last_lines()}")

  # r2ccctl.

  def ctl(self, node: int, *arguments: str) -> str:
    """Standard output of `r2ccctl` at the daemon of `node`."""
    argv = [str(self.binaries.ctl), "--run_dir", str(self.run_dir(node)), *arguments]
    try:
      done = subprocess.run(argv, capture_output=True, text=True, timeout=_CTL_TIMEOUT_S, check=False, env=clean_environment({}))
    except (OSError, subprocess.TimeoutExpired) as error:
      raise LabError(f"r2ccctl {' '.join(arguments)} at n{node}: {error}") from error
    if done.returncode != 0:
      time.sleep(0.1)  # a daemon that just crashed is not quite dead yet
      raise LabError(self.crash_report(node) or
                     f"r2ccctl {' '.join(arguments)} at n{node}: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
    return done.stdout

  def ctl_json(self, node: int, *arguments: str) -> Any:
    text = self.ctl(node, *arguments, "-o", "json")
    try:
      return json.loads(text)
    except ValueError as error:
      raise LabError(f"r2ccctl {' '.join(arguments)} at n{node} printed no JSON: {text[:80]!r}") from error

  def fail_nic(self, rail: RailId) -> None:
    self.ctl(self._any_daemon(rail.node), "fail-nic", str(rail))

  def restore_nic(self, rail: RailId) -> None:
    self.ctl(self._any_daemon(rail.node), "restore-nic", str(rail))

  def events(self, node: int) -> list[dict[str, Any]]:
    """The events that the daemon of `node` keeps; one JSON object a line."""
    return [json.loads(line) for line in self.ctl(node, "events", "-o", "json").splitlines() if line.strip()]

  def attached_processes(self, node: int) -> int:
    return len(self.ctl_json(node, "jobs").get("jobs", []))

  def living_daemons(self) -> list[int]:
    return [node for node, process in self._daemons.items() if process.is_alive()]

  def _any_daemon(self, preferred: int) -> int:
    living = self.living_daemons()
    if not living:
      raise LabError("no r2ccd runs in this lab")
    return preferred if preferred in living else living[0]

  # Jobs.

  def start_job(self, name: str, options: JobOptions) -> Job:
    lab = self.lab
    root = f"{lab.management_address(0)}:{lab.free_port(0)}"
    prefix = self._processes.logs / f"{name}-trace"
    ranks = []
    for rank in range(lab.nodes):
      environment = {
          "R2CC_RAILS": lab.rails_variable(rank),
          "R2CC_OOB_IFNAME": lab.management_interface(rank),
          "R2CC_NODE": f"n{rank}",
          "R2CC_ATTACH": str(self.attach_socket(rank)) if self.has_daemons else "none",
      } | options.environment
      plugin = options.plugins[rank] if options.plugins else self.binaries.plugin
      argv = [str(self.binaries.perf), "--plugin", str(plugin), "--collective", options.collective, "-b", options.size,
              "-e", options.size, "--seconds", f"{options.seconds_max:g}", "--rank", str(rank), "--nranks", str(lab.nodes),
              "--root", root, "--trace", str(prefix), "--json", "-c", "1", "--timeout", f"{options.timeout_s:g}", "--idle-sleep-us", "150",
              *options.flags]
      ranks.append(self._processes.start(f"{name}-rank{rank}", lab.command(rank, argv), environment))
    return Job(name, ranks, TraceFollower(prefix, lab.nodes))


def keep_logs(source: pathlib.Path, target: pathlib.Path) -> None:
  """Copies logs, traces and configs, but no sockets: those cannot be copied."""
  def sockets(folder: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if not os.path.isfile(os.path.join(folder, name)) and not os.path.isdir(os.path.join(folder, name))]
  shutil.copytree(source, target, dirs_exist_ok=True, ignore=sockets)
