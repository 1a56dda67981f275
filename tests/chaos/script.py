"""What a run of chaos does: jobs and faults with their times, made of a seed, and which faults may be there at once. Pure.

A fault holds what it breaks until it ends, so that no two break the same thing. Between each two nodes one rail is sound at every time: it
has no fault of a rail at either end. In a full fabric each node has a sound rail, which may be another one than its peer's. So no job may
fail, unless one of its ranks is killed.
"""

import dataclasses
import itertools
import json
import random
from typing import Any, Iterable, Sequence

# A run begins and ends with this much time without a fault.
QUIET_S = 10.0
GAP_S = 2.0
ACTIVE_MOST = 8
# A repaired thing is left alone for so long at least.
REST_S = 0.2
LONG_JOB_S_MOST = 900.0
SHORT_JOB_S = (1.0, 40.0)
LAST_START_S = 8.0
# Slot 0 has long jobs, whose memory and descriptors are watched and whose ranks are not killed.
SLOTS = 2
JOB_KINDS = ("ring", "alltoall", "collnet", "small")


@dataclasses.dataclass(frozen=True)
class Kind:
  """One kind of fault."""
  weight: float  # how often, compared with others
  seconds: tuple[float, float]  # how long it lasts; as often short as long, by order of magnitude
  holds: str  # rail, rate, word, daemon, disk, clock, rank, management or store: what nobody else breaks meanwhile
  breaks_rail: bool = False
  values: tuple[float, ...] = ()  # one of these is the fault's
  holds_too: str = ""
  needs: str = ""  # of the shape: host, guest, bond, vlan or release


KINDS = {
    # Of a rail.
    "cut": Kind(3, (0.05, 15), "rail", True),
    "carrier": Kind(1, (0.05, 15), "rail", True),
    "silence": Kind(3, (0.05, 15), "rail", True),
    "silence-in": Kind(2, (0.05, 15), "rail", True),
    "silence-out": Kind(2, (0.05, 15), "rail", True),
    "swallow": Kind(2, (0.5, 20), "rail", True),
    "loss": Kind(1, (0.5, 15), "rail", True, (1, 10, 40, 90)),  # percent
    "large": Kind(2, (0.5, 15), "rail", True, (1500, 4000, 8000)),  # bytes; what is larger is lost
    "mtu": Kind(1, (0.5, 15), "rail", True, (1280, 1500, 4000)),
    "part": Kind(1.5, (0.05, 15), "rail", True, (1, 2)),  # one peer is not heard: the next node, or the one after it
    "new-lost": Kind(1, (0.5, 15), "rail", True),  # connections that are there go on, none can be opened to here
    "reset": Kind(1, (0.5, 10), "rail", True, (1, 30), needs="host"),  # so many of 10,000 packets are answered with a reset
    "prohibited": Kind(0.7, (0.05, 10), "rail", True, needs="host"),  # a firewall says so
    "route": Kind(0.7, (0.05, 8), "rail", True),  # link and address stay
    "flap": Kind(1, (1, 10), "rail", True, (0.02, 0.1, 0.5, 1.5)),  # seconds down, and up
    "address": Kind(1, (0.05, 5), "rail", True),
    "reborn": Kind(1, (0.1, 5), "rail", True, holds_too="rate"),  # the interface is removed and made again
    "rate": Kind(2, (1, 30), "rate", False, (0.03, 0.1, 0.25, 0.5)),  # of the rail's own
    # Of a cable that delays, repeats, exchanges or damages packets.
    "delay": Kind(1, (1, 20), "rail", True, (2, 20, 200), "rate", "guest"),  # milliseconds
    "repeat": Kind(1, (1, 20), "rail", True, (1, 20), "rate", "guest"),  # percent
    "reorder": Kind(1, (1, 20), "rail", True, (1, 25), "rate", "guest"),
    "corrupt": Kind(1, (1, 20), "rail", True, (0.1, 2), "rate", "guest"),
    # Of what a rail is made of.
    "member": Kind(3, (0.05, 15), "rail", True, (0, 1), needs="bond"),  # one cable of two
    "parent": Kind(3, (0.05, 15), "rail", True, needs="vlan"),  # the interface below it
    # Of connections: all of a rail's are ended, and new ones may be opened at once.
    "killed-connections": Kind(1, (0.1, 0.2), "rail"),
    # Words of an operator. They break nothing: no word takes the last way to a node.
    "drain": Kind(1, (0.5, 20), "word"),
    "drill": Kind(1, (0.5, 20), "word"),
    # Of a daemon.
    "daemon-kill": Kind(1, (0.05, 10), "daemon"),
    "daemon-stop": Kind(1, (0.2, 15), "daemon"),
    "daemon-restart": Kind(0.7, (0.05, 3), "daemon"),
    "reload": Kind(1, (0.1, 0.2), "daemon"),
    "certificate": Kind(1, (0.1, 0.2), "daemon"),
    "disk-full": Kind(1, (1, 20), "disk"),
    "daemon-descriptors": Kind(0.5, (0.2, 8), "daemon"),  # it can open none
    "upgrade": Kind(0.7, (3, 40), "daemon", needs="release"),  # meanwhile the other release's program runs
    # Of a node's time of day; seconds.
    "clock-back": Kind(0.7, (1, 60), "clock", False, (2, 60, 3600, 86400)),
    "clock-ahead": Kind(0.7, (1, 60), "clock", False, (2, 60, 3600, 86400)),
    # Of a job.
    "rank-stop": Kind(2, (0.1, 12), "rank"),
    "rank-kill": Kind(0.3, (0.1, 0.2), "rank"),
    "rank-descriptors": Kind(0.7, (0.2, 4), "rank"),
    # Between all.
    "management-silence": Kind(0.7, (0.1, 6), "management"),
    "management-reset": Kind(0.7, (0.1, 0.2), "management"),  # the plugins' connections there are ended
    # Of the store.
    "store-stop": Kind(0.7, (0.2, 15), "store"),
    "store-kill": Kind(0.5, (0.1, 10), "store"),
}


@dataclasses.dataclass(frozen=True)
class Shape:
  """The cluster that is broken."""
  nodes: int = 3
  rails: int = 3
  etcd: bool = False
  fabric: str = "rail"  # or "full": every rail reaches every rail
  strict_arp: bool = False  # an interface answers ARP for its own addresses alone
  links: str = "veth"  # a rail is one; or a "bond" of two, or a "vlan" on one
  guest: bool = False  # in an emulated machine: Debian's kernel has netem, and no answers of a firewall at an interface
  release: bool = False  # there are programs of another release


@dataclasses.dataclass(frozen=True)
class Fault:
  """Times count from the first job's first iteration. What does not apply is -1."""
  at_s: float
  for_s: float
  kind: str
  node: int = -1
  rail: int = -1
  slot: int = -1
  value: float = -1

  @property
  def end_s(self) -> float:
    return self.at_s + self.for_s

  @property
  def held(self) -> set[tuple[str, int, int, int]]:
    kind = KINDS[self.kind]
    return {(what, self.node, self.rail, self.slot) for what in (kind.holds, kind.holds_too) if what}

  def text(self) -> str:
    where = "" if self.node < 0 else f" n{self.node}" + (f"/rail{self.rail}" if self.rail >= 0 else "")
    return f"{self.kind}{where}" + (f" job {self.slot}" if self.slot >= 0 else "") + (f" {self.value:g}" if self.value >= 0 else "")


@dataclasses.dataclass(frozen=True)
class JobPlan:
  """One job; it begins at `at_s`, or when the one before it in its slot has ended."""
  slot: int
  at_s: float
  for_s: float
  kind: str
  environment: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Script:
  """All that a run does. `seed` is where it came from."""
  seed: int
  seconds: float
  shape: Shape
  jobs: tuple[JobPlan, ...]
  faults: tuple[Fault, ...]


def sound_between(one: int, other: int, rails: int, broken: Iterable[tuple[int, int]]) -> list[int]:
  """Rails without a fault at either end; `broken`: (node, rail)."""
  lost = {rail for node, rail in broken if node in (one, other)}
  return [rail for rail in range(rails) if rail not in lost]


def leaves_a_way(shape: Shape, broken: Iterable[tuple[int, int]]) -> bool:
  """Whether each two nodes have a sound rail between them."""
  lost = list(broken)
  if shape.fabric == "full":  # any sound rail of the one end reaches any of the other
    return all(any((node, rail) not in lost for rail in range(shape.rails)) for node in range(shape.nodes))
  return all(sound_between(one, other, shape.rails, lost) for one, other in itertools.combinations(range(shape.nodes), 2))


def may_begin(fault: Fault, active: Iterable[Fault], shape: Shape) -> bool:
  """Whether it may begin while `active` are there, or have just ended."""
  others = list(active)
  if any(other.held & fault.held for other in others):
    return False
  if not KINDS[fault.kind].breaks_rail:
    return True
  broken = [(other.node, other.rail) for other in others if KINDS[other.kind].breaks_rail]
  return leaves_a_way(shape, broken + [(fault.node, fault.rail)])


def make(seed: int, seconds: float, shape: Shape, kinds: Sequence[str] = (), job_kinds: Sequence[str] = (),
         gap_s: float = GAP_S) -> Script:
  """The same for the same arguments. `kinds`, `job_kinds`: those alone; none: all. `gap_s`: from one fault to the next, on average."""
  chance = random.Random(seed)
  jobs = _make_jobs(chance, seconds, job_kinds or JOB_KINDS)
  names = [name for name in KINDS if (not kinds or name in kinds) and _possible(name, shape)]
  faults: list[Fault] = []
  now_s = QUIET_S
  while True:
    now_s += chance.expovariate(1 / gap_s)
    if now_s > seconds - QUIET_S:
      return Script(seed, seconds, shape, jobs, tuple(faults))
    fault = _make_fault(chance, now_s, shape, names)
    active = [other for other in faults if other.end_s + REST_S > fault.at_s]
    if fault.end_s <= seconds - QUIET_S and len(active) < ACTIVE_MOST and may_begin(fault, active, shape):
      faults.append(fault)


def _between(chance: random.Random, least: float, most: float) -> float:
  """As often near the one as near the other, by order of magnitude."""
  return least * (most / least)**chance.random()


def _possible(name: str, shape: Shape) -> bool:
  """In a full fabric an address has rules and routes of its own, which the lab does not change; nor does it make a bond or a VLAN again."""
  kind = KINDS[name]
  if kind.holds == "store":
    return shape.etcd
  if kind.needs:
    has = {"host": not shape.guest, "guest": shape.guest, "release": shape.release}
    return has.get(kind.needs, kind.needs == shape.links)
  return (shape.fabric == "rail" or name not in ("address", "reborn", "route")) and (shape.links == "veth" or name != "reborn")


def _make_fault(chance: random.Random, at_s: float, shape: Shape, names: list[str]) -> Fault:
  name = chance.choices(names, [KINDS[name].weight for name in names])[0]
  kind = KINDS[name]
  for_s = _between(chance, *kind.seconds)
  node, rail, slot = chance.randrange(shape.nodes), chance.randrange(shape.rails), chance.randrange(SLOTS)
  value = chance.choice(kind.values) if kind.values else -1
  return Fault(round(at_s, 3), round(for_s, 3), name, -1 if kind.holds == "store" else node,
               rail if kind.holds in ("rail", "rate", "word") else -1,
               -1 if kind.holds != "rank" else SLOTS - 1 if name == "rank-kill" else slot, value)


def _make_jobs(chance: random.Random, seconds: float, kinds: Sequence[str]) -> tuple[JobPlan, ...]:
  jobs = []
  long_jobs = max(1, round(seconds / LONG_JOB_S_MOST))
  for number in range(long_jobs):
    jobs.append(JobPlan(0, round(number * seconds / long_jobs, 3), round(seconds / long_jobs, 3), chance.choice(kinds),
                        _make_environment(chance)))
  now_s = 1.0
  while now_s < seconds - LAST_START_S:
    for_s = min(_between(chance, *SHORT_JOB_S), seconds - now_s)
    jobs.append(JobPlan(1, round(now_s, 3), round(for_s, 3), chance.choice(kinds), _make_environment(chance)))
    now_s += for_s + chance.uniform(0.2, 2)
  return tuple(jobs)


def _make_environment(chance: random.Random) -> dict[str, str]:
  """Settings of the plugin that lead through other code. A short silence gives up links of busy processes; a short deadline is longer than
  any silence of the management network, so that no job may fail by it."""
  environment = {}
  for name, value, share in (("R2CC_MODE", "3", 0.2), ("R2CC_BULK_THREADS", "2", 0.3), ("R2CC_BULK_THREADS", "0", 0.2),
                             ("R2CC_SOCKETS_PER_RAIL", "3", 0.3), ("R2CC_CHECKSUM", "1", 0.2), ("R2CC_CHUNK_BYTES", "65536", 0.2),
                             ("R2CC_SILENCE_MS", "60", 0.2), ("R2CC_DEADLINE_MS", "10000", 0.3)):
    if chance.random() < share:
      environment[name] = value
  return environment


def write(script: Script) -> str:
  """A line of JSON for each thing, so that a person can take faults out."""
  first = {"seed": script.seed, "seconds": script.seconds, "shape": dataclasses.asdict(script.shape)}
  jobs = [{"job": dataclasses.asdict(job)} for job in script.jobs]
  faults = [{"fault": {name: value for name, value in dataclasses.asdict(fault).items() if value != -1}} for fault in script.faults]
  return "".join(json.dumps(line) + "\n" for line in [first, *jobs, *faults])


def read(text: str) -> Script:
  """What write() wrote. ValueError: it is not, or it leaves two nodes without a way."""
  lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
  try:
    shape = Shape(**lines[0]["shape"])
    jobs = tuple(JobPlan(**line["job"]) for line in lines[1:] if "job" in line)
    faults = tuple(sorted((Fault(**line["fault"]) for line in lines[1:] if "fault" in line), key=lambda fault: fault.at_s))
    script = Script(lines[0]["seed"], lines[0]["seconds"], shape, jobs, faults)
  except (IndexError, KeyError, TypeError) as error:
    raise ValueError(f"this is no script of chaos: {error!r}") from error
  for number, fault in enumerate(faults):
    if fault.kind not in KINDS:
      raise ValueError(f"there is no fault '{fault.kind}'; there are {', '.join(KINDS)}")
    if not _possible(fault.kind, shape):
      raise ValueError(f"{fault.text()} at {fault.at_s:g} s: this cluster cannot have it: {shape}")
    active = [other for other in faults[:number] if other.end_s > fault.at_s]
    if not may_begin(fault, active, shape):
      raise ValueError(f"{fault.text()} at {fault.at_s:g} s: what it breaks is broken already, or two nodes have no way left")
  return script
