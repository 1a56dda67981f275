"""One trial: two daemons, one job, a fault under it, and what came of that."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from typing import Any, Callable

from rich.console import Console

from deploy.drill.record import Mark, Record
from deploy.drill.report import LiveReport, goodput_chart
from deploy.trial import network
from deploy.trial.machines import Here, Machine, RemoteProcesses, There, run
from deploy.trial.network import Rail
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Binaries, keep_logs
from testing.lab.lab import LabError, monotonic_ns
from testing.lab.processes import ManagedProcess, Processes, wait_until
from testing.lab.traces import TraceFollower

FOLDER_PREFIX = "r2cc-try-"
_START_S = 30.0
_STOP_S = 30.0
_TICK_S = 0.1
# A rail that takes part in the job again has settled after so long.
_BACK_S = 60.0
_BAD = ("FAILED", "SUSPECT", "DEGRADED")
_NODE_NAME = re.compile(r"[^A-Za-z0-9._-]")


def node_names(here: str, peer: str) -> tuple[str, str]:
  """Names for the two daemons; different ones, whatever the machines are called."""
  names = [_NODE_NAME.sub("-", text.rpartition("@")[2])[:48] or "node" for text in (here, peer)]
  return (names[0], names[1]) if names[0] != names[1] else (f"{names[0]}-here", f"{names[1]}-there")


def host_port(address: str, port: int) -> str:
  return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def config_text(node: str, other: str, addresses: tuple[str, str], port: int, interfaces: list[str], rails: list[Rail]) -> str:
  """r2cc.v1.DaemonConfig of one machine: `addresses` are its own and the other's."""
  listen, peer = (host_port(address, port) for address in addresses)
  lines = [f'node: "{node}"', f'listen: "{listen}"', f'peers {{ node: "{other}" address: "{peer}" }}',
           *(f'nics {{ name: "{rail.name}" interface: "{interface}" }}' for rail, interface in zip(rails, interfaces)),
           "insecure: true", "drills { allow: true }"]
  return "\n".join(lines) + "\n"


def bad_nics(nics: dict[str, Any]) -> list[tuple[str, str, str]]:
  """Of `r2ccctl nic list -o json`: node, NIC and state of what is not well."""
  return [(node["node"], nic["name"], nic["state"]) for node in nics.get("nodes", []) for nic in node.get("nics", [])
          if nic.get("state") in _BAD]


@dataclasses.dataclass
class Outcome:
  """What the verdict rests on."""
  survived: bool = False  # a fault was seen, and the job went on with it
  fault: str = ""
  problems: list[str] = dataclasses.field(default_factory=list)


class Trial:
  """A context manager: what it starts, writes and sets on the two machines is gone after it."""

  def __init__(self, options: argparse.Namespace, console: Console):
    self._options, self._console = options, console
    names = node_names(socket.gethostname(), options.peer)
    self._here, self._there = Here(names[0]), There(names[1], [*options.ssh_command, options.peer])
    found = built_binaries()
    # Of a package these are links to where the other machine's package has the same.
    self._binaries = Binaries(**{name: path.resolve() for name, path in vars(found).items()})
    self._undo: list[Callable[[], None]] = []
    self._outcome = Outcome()
    self._record = Record("machines", 2, None, begin_ns=monotonic_ns())
    self._live = LiveReport(console, self._record)

  def __enter__(self) -> "Trial":
    try:
      self._binaries.check()
      self._folder = pathlib.Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir="/tmp"))
      self._undo.append(self._remove_folder)
      self._processes = Processes(self._folder)
      self._undo.append(self._processes.end_all)
      self._remote = RemoteProcesses(self._processes)
      self._undo.append(self._remote.end)
    except BaseException:
      self.__exit__()
      raise
    return self

  def __exit__(self, *unused: object) -> None:
    self._live.stop()
    while self._undo:
      undo = self._undo.pop()
      try:
        undo()
      except LabError as error:
        self._console.print(f"left behind: {error}", highlight=False, soft_wrap=True)

  def _remove_folder(self) -> None:
    if self._options.keep_logs is not None:
      keep_logs(self._folder, self._options.keep_logs)
    shutil.rmtree(self._folder, ignore_errors=True)

  def run(self) -> Outcome:
    self._live.headline(f"R2CC trial: {self._here.name} and {self._there.name}, {len(self._options.pairs)} rails")
    management = self._meet()
    rails = self._find_rails(management)
    self._start_daemons(management, rails)
    ranks = self._start_job(management, rails)
    follower = TraceFollower(self._folder / "trace", 1)
    self._record.traces.append(follower.rows)
    self._watch(ranks, follower)
    self._stop_job(ranks, follower)
    return self._outcome

  # The two machines.

  def _meet(self) -> tuple[str, str]:
    """The addresses by which ssh joins them."""
    result = run(self._there, ["sh", "-c", "echo $SSH_CONNECTION"]).split()
    if len(result) != 4:
      raise LabError(f"{self._there.name}: ssh says no SSH_CONNECTION, so that the machines' addresses are not known")
    for program in (self._binaries.daemon, self._binaries.perf):
      versions = [run(machine, [str(program), "--version"]).strip() for machine in (self._here, self._there)]
      if versions[0] != versions[1]:
        raise LabError(f"{program.name} is another release there: here {versions[0].splitlines()[0]}, at {self._there.name} "
                       f"{versions[1].splitlines()[0]}; install the same packages on both machines")
    return result[0], result[2]

  def _find_rails(self, management: tuple[str, str]) -> list[Rail]:
    ports = [network.parse_ports(run(machine, ["ip", "-j", "address", "show"]), machine.name) for machine in (self._here, self._there)]
    rails = network.pair_rails(ports[0], ports[1], self._options.pairs, (self._here.name, self._there.name))
    for rail in rails:
      if rail.temporary:
        for machine, interface, address in ((self._here, rail.here, rail.here_address), (self._there, rail.there, rail.there_address)):
          self._set_address(machine, interface, f"{address}/{rail.prefix_bits}")
      self._live.detail(f"{rail.name}: {rail.here} ({rail.here_address}) to {rail.there} of {self._there.name} ({rail.there_address})")
    for line in network.warnings(ports[0], rails, management):
      self._console.print(f"[yellow]warning[/yellow]  {line}", highlight=False, soft_wrap=True)
    return rails

  def _set_address(self, machine: Machine, interface: str, address: str) -> None:
    try:
      run(machine, ["ip", "address", "add", address, "dev", interface])
    except LabError as error:
      raise LabError(f"{error}; only root may give {interface} an address: do that, or run this as root, and ssh as root") from error
    self._undo.insert(1, lambda: run(machine, ["ip", "address", "del", address, "dev", interface]) and None)

  # Daemons and the job.

  def _start_daemons(self, management: tuple[str, str], rails: list[Rail]) -> None:
    names = (self._here.name, self._there.name)
    port = self._options.port
    own = self._folder / "r2ccd.textproto"
    own.write_text(config_text(names[0], names[1], management, port, [rail.here for rail in rails], rails), encoding="utf-8")
    others = config_text(names[1], names[0], (management[1], management[0]), port, [rail.there for rail in rails], rails)
    remote = run(self._there, ["mktemp", "-d", f"/tmp/{FOLDER_PREFIX}XXXXXX"]).strip()
    if not re.fullmatch(rf"/tmp/{FOLDER_PREFIX}\w+", remote):
      raise LabError(f"{self._there.name}: mktemp printed {remote[:80]!r}")
    # After the daemon, whose connection ends first.
    self._undo.insert(1, lambda: run(self._there, ["rm", "-rf", remote]) and None)
    run(self._there, ["sh", "-c", 'printf %s "$1" > "$2"', "sh", others, f"{remote}/r2ccd.textproto"])
    self._remote_folder = remote
    flags = lambda folder: ["--config", f"{folder}/r2ccd.textproto", "--run_dir", f"{folder}/run", "--state_dir", f"{folder}/state"]
    self._daemon = self._processes.start("r2ccd-here", self._here.argv([str(self._binaries.daemon), *flags(self._folder)], {}))
    peer = self._remote.start(self._there, "r2ccd-there", [str(self._binaries.daemon), *flags(remote)], {})

    def met() -> bool:
      for name, ended in ((names[0], self._daemon.returncode), (names[1], peer.poll())):
        if ended is not None:
          raise LabError(f"r2ccd of {name} ended with {ended}: {self._last_lines('r2ccd-here' if name == names[0] else 'r2ccd-there')}")
      status = self._ctl_json("status")
      nodes = {node["node"] for node in status.get("nodes", [])}
      return set(names) <= nodes and all(peer.get("connected") for peer in status.get("peers", [{}]))

    if not wait_until(met, _START_S, _TICK_S):
      raise LabError(f"the two r2ccd have not met within {_START_S:g} s: does a firewall let TCP {port} through? "
                     f"{self._last_lines('r2ccd-here')}")
    self._live.detail("both r2ccd are up and have met")

  def _last_lines(self, name: str) -> str:
    text = (self._folder / f"{name}.err").read_text(encoding="utf-8", errors="replace")
    return " | ".join(line.strip() for line in text.splitlines()[-3:] if line.strip()) or "it said nothing"

  def _ctl(self, *arguments: str) -> str:
    """Empty, if the daemon does not answer."""
    argv = [str(self._binaries.ctl), "--run_dir", str(self._folder / "run"), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout if done.returncode == 0 else ""

  def _ctl_json(self, *arguments: str) -> dict[str, Any]:
    text = self._ctl(*arguments, "-o", "json")
    return json.loads(text) if text else {}

  def _start_job(self, management: tuple[str, str], rails: list[Rail]) -> tuple[ManagedProcess, subprocess.Popen]:
    argv = [str(self._binaries.perf), "--plugin", str(self._binaries.plugin), "-b", self._options.size, "--seconds", "86400",
            "--nranks", "2", "--root", host_port(management[0], self._options.port + 1), "--progress", "0", "--json"]
    environment = lambda node, own, interfaces, run_dir: {
        "R2CC_RAILS": ",".join(interfaces), "R2CC_OOB_IFNAME": own, "R2CC_NODE": node, "R2CC_JOB": "try",
        "R2CC_ATTACH": f"{run_dir}/attach.sock"}
    here = environment(self._here.name, management[0], [rail.here for rail in rails], self._folder / "run")
    there = environment(self._there.name, management[1], [rail.there for rail in rails], f"{self._remote_folder}/run")
    trace = ["--trace", str(self._folder / "trace")]
    return (self._processes.start("rank0", self._here.argv([*argv, *trace, "--rank", "0"], here)),
            self._remote.start(self._there, "rank1", [*argv, "--rank", "1"], there))

  # What happens.

  def _watch(self, ranks: tuple[ManagedProcess, subprocess.Popen], follower: TraceFollower) -> None:
    options = self._options
    iterations = lambda: sum(1 for row in follower.rows if row.kind == "iteration")

    def poll() -> None:
      follower.poll()
      for name, ended in (("rank0", ranks[0].returncode), ("rank1", ranks[1].poll())):
        if ended is not None:
          raise LabError(f"the job died: {name} ended with {ended}: {self._last_lines(name)}")

    def wait(condition: Callable[[], bool], seconds: float) -> bool:
      def looked() -> bool:
        poll()
        return condition()
      return wait_until(looked, seconds, _TICK_S)

    if not wait(lambda: iterations() >= 2, _START_S):
      raise LabError(f"the job moved nothing within {_START_S:g} s: {self._last_lines('rank0')}")
    self._mark(f"an all_reduce of {options.size} runs again and again")
    wait(lambda: False, options.phase)
    fault = self._await_fault(wait)
    if fault is None:
      self._outcome.problems.append(f"no cable was pulled within {options.wait:g} s")
      return
    node, nic, state = fault
    self._outcome.fault = f"{node}/{nic}"
    self._mark(f"{node}/{nic} is {state}")
    before = iterations()
    wait(lambda: False, options.phase)
    if iterations() > before:
      self._outcome.survived = True
      self._live.detail(f"the job goes on without it: {iterations() - before} all_reduces since")
    else:
      self._outcome.problems.append(f"the job stood still for {options.phase:g} s after the fault")
    self._show("nic", "why", f"{node}/{nic}")
    if self._await_repair(wait, f"{node}/{nic}"):
      self._mark("all rails are well again")
      wait(lambda: False, options.phase)
    else:
      self._live.detail(f"{node}/{nic} is not back after {options.wait:g} s; going on without")

  def _await_fault(self, wait: Callable[[Callable[[], bool], float], bool]) -> tuple[str, str, str] | None:
    options = self._options
    found: list[tuple[str, str, str]] = []

    def failed() -> bool:
      found[:] = bad_nics(self._ctl_json("nic", "list"))
      return bool(found)

    if options.fault == "drill":
      self._mark(f"drill: r2ccd treats {self._here.name}/rail1 as dead")
      self._ctl("fail-nic", f"{self._here.name}/rail1")
      return found[0] if wait(failed, _START_S) else None
    ends = [f"{one} of {self._here.name} or {other} of {self._there.name}" for one, other in options.pairs]
    self._console.print(f"[bold]Pull one cable: {', '.join(ends)}[/bold]", highlight=False, soft_wrap=True)
    return found[0] if wait(failed, options.wait) else None

  def _await_repair(self, wait: Callable[[Callable[[], bool], float], bool], nic: str) -> bool:
    if self._options.fault == "drill":
      self._ctl("restore-nic", nic)
    else:
      self._console.print("[bold]Put it back[/bold]", highlight=False, soft_wrap=True)
    return wait(lambda: (nics := self._ctl_json("nic", "list")) != {} and not bad_nics(nics),
                _BACK_S if self._options.fault == "drill" else self._options.wait)

  def _stop_job(self, ranks: tuple[ManagedProcess, subprocess.Popen], follower: TraceFollower) -> None:
    # Its own process: `env` has become r2cc-perf.
    ranks[0].send(signal.SIGINT)
    if ranks[0].wait(_STOP_S) is None:
      raise LabError(f"the job did not end within {_STOP_S:g} s of being asked to")
    follower.poll()
    self._record.end_ns = monotonic_ns()
    report = json.loads((ranks[0].output().strip().splitlines() or ["{}"])[-1])
    for what in ("wrong_elements", "late_writes"):
      if report.get(what) != 0:
        self._outcome.problems.append(f"{report.get(what)} {what.replace('_', ' ')}")
    self._console.print()
    self._console.print("[bold]Goodput, while an all_reduce runs[/bold]")
    self._console.print(goodput_chart(self._record, self._console.width), soft_wrap=True)
    time.sleep(0.5)  # the daemon hears of the job's end
    self._show("job", "report", "try")

  def _show(self, *arguments: str) -> None:
    self._console.print()
    self._console.print(f"[dim]$ r2ccctl {' '.join(arguments)}[/dim]", highlight=False, soft_wrap=True)
    self._console.print(self._ctl(*arguments).rstrip(), markup=False, highlight=False, soft_wrap=True)
    self._console.print()

  def _mark(self, text: str) -> None:
    mark = Mark(monotonic_ns(), chr(ord("A") + len(self._record.marks)), text)
    self._record.marks.append(mark)
    self._live.mark(mark)
