"""How soon the daemons find a fault and put it on every page of the job, and what they accuse wrongly: 4 nodes of 4 rails in network
namespaces, under a job that fills the rails. First nothing is broken while every core is kept busy; then rails lose their link, or fall
silent, one after the other. Tells how far the news had come when (`stations_ms` in detect_figures). What the machine itself stood still is
left out of the time to the page, and told. Prints figures; fails only if the rig does. Needs root."""

import argparse
import contextlib
import itertools
import json
import os
import sys
import time
from typing import Iterator

from testing.lab import stalls
from testing.lab.cluster import Cluster, JobOptions
from testing.lab.lab import LabError, RailId, monotonic_ns
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes, wait_until
from tests.bench import in_namespaces, machine
from tests.bench.detect_figures import BAD_STATES, Broken, Event, Found, false_verdicts, found, state_of, stations_ms
from tests.bench.fault_figures import percentile
from tests.bench.in_namespaces import Figures, print_line
from tests.bench.link_listener import LinkListener
from tests.bench.options import names_file, own_path
from tests.bench.pauses import Pauses

NODES, RAILS = 4, 4
KINDS = ("event", "silence")
START_S, FOUND_S, HEALED_S, STOP_S = 60.0, 10.0, 90.0, 60.0
LOOK_S = 0.02
# A verdict about a fault may come, or be taken back, so long after it was mended.
SETTLE_NS = 3_000_000_000
HOG = "while True:\n  pass\n"


class Follower:
  """One daemon's events, as `r2ccctl events --follow` prints them."""

  def __init__(self, process: ManagedProcess):
    self._process, self._offset, self.events = process, 0, []

  def poll(self) -> list[Event]:
    if not self._process.is_alive():
      raise LabError(f"{self._process.name} ended with {self._process.returncode}: {self._process.last_lines()}")
    with open(self._process.out_path, "rb") as out:
      out.seek(self._offset)
      text = out.read()
    whole = text[:text.rfind(b"\n") + 1]
    self._offset += len(whole)
    self.events += [json.loads(line) for line in whole.splitlines()]
    return self.events


class Stage:
  """The cluster, its job, and everything that its daemons told."""

  def __init__(self, cluster: Cluster, processes: Processes, listener: LinkListener, pauses: Pauses, size: str):
    self.cluster, self.lab, self.listener, self.pauses, self.faults = cluster, cluster.lab, listener, pauses, []
    cluster.start_daemons()
    self.followers = [Follower(processes.start(f"events-n{node}", [
        str(cluster.binaries.ctl), "--run_dir", str(cluster.run_dir(node)), "events", "--follow", "-o", "json"])) for node in range(NODES)]
    self.job = cluster.start_job("job", JobOptions(size=size, seconds_max=6 * 3600, environment={}))
    if not wait_until(lambda: any(row.kind == "iteration" for row in self.job.follower.poll()) or self.job.dead_rank() is not None, START_S,
                      0.1) or self.job.dead_rank() is not None:
      raise LabError(f"the job did not start: {' / '.join(rank.last_lines() for rank in self.job.ranks)}")
    if not wait_until(self.all_probed, START_S, 0.2):
      raise LabError("not every pair of rails is probed and answers")

  def all_probed(self) -> bool:
    return all(self.probed(RailId(node, rail)) for node in range(NODES) for rail in range(RAILS))

  def check_job(self) -> None:
    self.job.follower.poll()
    self.job.follower.rows.clear()
    if self.job.dead_rank() is not None:
      raise LabError(" / ".join(self.job.failures()) or "the job ended by itself")

  def healthy(self, rail: RailId) -> bool:
    return all(state_of(follower.poll(), str(rail)) in (None, "HEALTHY") for follower in self.followers)

  def probed(self, rail: RailId) -> bool:
    pairs = self.cluster.ctl_json(rail.node, "path", "probe", f"n{rail.node}").get("pairs", [])
    return sum(pair["nic"] == f"rail{rail.rail}" and pair["state"] == "up" for pair in pairs) == NODES - 1

  def strike(self, rail: RailId, silently: bool) -> dict[str, float]:
    """Milliseconds from the fault to the stations on its way to the last of the nodes' pages (`stations_ms`), and `machine_paused`, of that
    what the whole machine stood still; mends it."""
    if not wait_until(lambda: self.healthy(rail) and self.probed(rail), HEALED_S, 0.1):
      raise LabError(f"{rail} did not become healthy within {HEALED_S:g} s")
    with first_in_line():
      fault_ns = (self.lab.blackhole if silently else self.lab.cut)(rail)
    nodes: list[Found] = []

    def on_all_pages() -> bool:
      nodes[:] = [seen for follower in self.followers if (seen := found(follower.poll(), str(rail), fault_ns)) is not None]
      return len(nodes) == NODES

    on_all = wait_until(on_all_pages, FOUND_S, LOOK_S)
    (self.lab.unblackhole if silently else self.lab.heal)(rail)
    self.faults.append(Broken(str(rail), fault_ns, monotonic_ns() + SETTLE_NS))
    self.check_job()
    if not on_all:
      raise LabError(f"{rail} {'fell silent' if silently else 'lost its link'}, and after {FOUND_S:g} s not every page says so: {nodes}")
    kernel_ns = None if silently else self.listener.down_ns(self.lab.namespace(rail.node), f"rail{rail.rail}", fault_ns)
    whole = stalls.Window(fault_ns, max(node.page_ns for node in nodes))
    return stations_ms(fault_ns, kernel_ns, nodes, rail.node) | {"machine_paused": stalls.overlap_ns(self.pauses.windows(), whole) / 1e6}

  def bad_verdicts(self, since_ns: int = 0) -> list[str]:
    return [line for node, follower in enumerate(self.followers) for line in
            false_verdicts(follower.poll(), f"n{node}", self.faults, since_ns)]


@contextlib.contextmanager
def first_in_line() -> Iterator[None]:
  """No cable waits for a processor before it breaks. This thread does, while the kernel takes a link down for it, behind the job's threads:
  so it has the highest priority short of a real-time one. Nothing may be started meanwhile, as it would inherit that."""
  before = os.getpriority(os.PRIO_PROCESS, 0)
  os.setpriority(os.PRIO_PROCESS, 0, -20)
  try:
    yield
  finally:
    os.setpriority(os.PRIO_PROCESS, 0, before)


def parse_arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="detect", description=__doc__, allow_abbrev=False)
  parser.add_argument("--runs", type=int, default=100, help="faults of each kind (default: %(default)s)")
  parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of faults: a link event, or silence (default: both)")
  parser.add_argument("--minutes", type=float, default=10, help="without a fault, under load (default: %(default)s)")
  parser.add_argument("--hogs", type=int, default=os.cpu_count(),
                      help="processes that only burn CPU meanwhile (default: one a core, %(default)s)")
  parser.add_argument("--quick", action="store_true", help="5 faults of each kind and half a minute: a try, no figures to quote")
  parser.add_argument("--rate", default="500mbit", help="of one rail (default: %(default)s)")
  parser.add_argument("--size", default="16M", help="of the all_reduce (default: %(default)s)")
  parser.add_argument("--tls", action="store_true", help="the daemons know each other by certificates (default: insecure)")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object; all else goes to standard error")
  parser.add_argument("--plugin", type=names_file, metavar="PATH", help="instead of the one built here")
  parser.add_argument("--keep-logs", type=own_path, metavar="DIR", help="leave logs there")
  options = parser.parse_args()
  if options.quick:
    options.runs, options.minutes = 5, 0.5
  if options.runs < 1 or options.minutes < 0 or options.hogs < 0:
    parser.error("--runs must be at least 1, --minutes and --hogs not negative")
  return options


def watch(stage: Stage, processes: Processes, minutes: float, hogs: int) -> list[str]:
  """Nothing is broken; one line for each time that something was accused."""
  since_ns = monotonic_ns()
  burning = [processes.start(f"hog{hog}", [sys.executable, "-c", HOG]) for hog in range(hogs)]
  end_s, printed_s = time.monotonic() + minutes * 60, time.monotonic()
  while (now_s := time.monotonic()) < end_s:
    time.sleep(min(1.0, end_s - now_s))
    stage.check_job()
    if now_s - printed_s > 60:
      printed_s = now_s
      print_line(f"{(end_s - now_s) / 60:.0f} minutes left, {len(stage.bad_verdicts(since_ns))} false verdicts")
  for hog in burning:
    hog.kill()
  bad_verdicts = stage.bad_verdicts(since_ns)
  for line in bad_verdicts:
    print_line(f"FALSE: {line}")
  return bad_verdicts


def strike_all(stage: Stage, kind: str, runs: int) -> Figures:
  """Breaks rail after rail: one after the other has neither node nor rail in common, so that what still proves itself does not meddle."""
  rails = [RailId(node, (node + turn) % RAILS) for turn in range(RAILS) for node in range(NODES)]
  took: list[dict[str, float]] = []
  for number, rail in zip(range(runs), itertools.cycle(rails)):
    took.append(stage.strike(rail, silently=kind == "silence"))
    print_line(f"{kind} {number + 1}/{runs}: {rail} " + ", ".join(f"{name} {ms:.1f}" for name, ms in took[-1].items()) + " ms")

  def spread(values_ms: list[float]) -> Figures:
    return {"p50": round(percentile(values_ms, 0.5), 2), "p99": round(percentile(values_ms, 0.99), 2), "max": round(max(values_ms), 2)}

  result: Figures = {f"{kind}_to_page_ms_{name}": value for name, value in
                     spread([one["pages"] - one["machine_paused"] for one in took]).items()}
  return result | {f"{kind}_stations_ms": {name: spread([one[name] for one in took if name in one]) for name in took[0]}}


def measure(options: argparse.Namespace, cluster: Cluster, processes: Processes, listener: LinkListener, pauses: Pauses) -> Figures:
  facts = machine.describe()
  print_line(machine.headline(facts))
  others = machine.OthersShare()
  stage = Stage(cluster, processes, listener, pauses, options.size)
  print_line(f"watching {options.minutes:g} minutes with {options.hogs} hogs")
  watched = watch(stage, processes, options.minutes, options.hogs)
  begin_ns = monotonic_ns()
  result = {"nodes": NODES, "rails": RAILS, "rate": options.rate, "runs": options.runs, "watched_minutes": options.minutes,
            "tls": options.tls, "hogs": options.hogs}
  for kind in options.kinds:
    result |= strike_all(stage, kind, options.runs)
  bystanders = stage.bad_verdicts(begin_ns)
  for line in bystanders:
    print_line(f"BYSTANDER: {line}")
  by_state = {state: sum(f" {state}: " in line for line in watched) for state in BAD_STATES}
  result |= {"false_verdicts": len(watched), "false_by_state": by_state, "accused_bystanders": len(bystanders)}
  stage.job.ask_to_stop()
  if not stage.job.wait(STOP_S):
    raise LabError(f"the job did not end within {STOP_S:g} s of being asked to")
  report = stage.job.report()
  result |= {"wrong": report["wrong_elements"], "late_writes": report["late_writes"]}
  facts["others_share"] = round(others.share(), 3)
  if (warning := machine.warning(facts)) is not None:
    print_line(warning)
  return result | {"machine": facts}


def main() -> int:
  options = parse_arguments()

  def listen_and_measure(cluster: Cluster, processes: Processes) -> Figures:
    with LinkListener([cluster.lab.namespace(node) for node in range(NODES)]) as listener, Pauses(print_line) as pauses:
      return measure(options, cluster, processes, listener, pauses)

  return in_namespaces.run("detect", NamespaceLab(NODES, RAILS, rate=options.rate), listen_and_measure, options.json, options.plugin,
                           options.keep_logs, options.tls)


if __name__ == "__main__":
  sys.exit(main())
