"""An emulated cluster with jobs on it: namespaces, shaped rails, an r2ccd on each node where one is wanted. Nothing of it outlives it."""

import contextlib
import dataclasses
import pathlib
import shutil
import tempfile
import time
from types import TracebackType
from typing import Any, Callable, Sequence

from testing.lab.cluster import Binaries, Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes
from tests.bench import traffic
from tests.gpu.job import Job, JobBroken, TICK_S
from tests.gpu.placement import Network, Placement, dealt_processors, rank_environment

# A repaired rail is back when it has carried so much; it is waited for so long.
BACK_BYTES, BACK_S = 4 << 20, 20.0
GROUP_TIMEOUT_S = 60.0


@dataclasses.dataclass(frozen=True)
class Setup:
  """Of a whole run; say() prints a line of progress."""
  binaries: Binaries
  program: pathlib.Path  # `run`, which starts ranks too
  python: str
  device: str
  gpus: int
  cores: Sequence[Sequence[int]]  # processors that nodes share out among them; empty: all may use all
  nodes: int
  nodes_asked: int | None  # --nodes; None: not given
  rails: int
  rate: str | None
  nccl: pathlib.Path | None
  out: pathlib.Path
  quick: bool
  sizes: str  # of healthy and unshaped: "small", "large" or "all"
  steps: int
  seeds: int
  first_seed: int
  sequences: int  # of a rank's batch in training; 0: found by calibration
  rounds: int  # batches of a training step
  library_path: str  # LD_LIBRARY_PATH as the user has it
  environment: dict[str, str]
  print_line: Callable[[str], None]

  @property
  def is_tiny(self) -> bool:
    """Models of a size that a CPU can try."""
    return self.device == "cpu"

  def size(self, size_bytes: int) -> int:
    """A CPU tries the programs with a sixteenth."""
    return size_bytes if self.device == "cuda" else size_bytes // 16


class Stage:
  """A context manager."""

  def __init__(self, setup: Setup, name: str, nodes: int, rate: str | None, daemons: bool = False):
    self.setup, self.name, self.nodes, self.rate, self.has_daemons = setup, name, nodes, rate, daemons
    self._jobs: list[Job] = []
    self._serial = 0

  def __enter__(self) -> "Stage":
    with contextlib.ExitStack() as stack:
      # In /tmp whatever TMPDIR says: the path of a Unix socket has room for 107 bytes.
      self._folder = pathlib.Path(tempfile.mkdtemp(prefix="r2cc-gpu-", dir="/tmp"))
      stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
      self._logs = self.setup.out / "logs" / f"{time.strftime('%H%M%S')}-{self.name}"
      self._logs.mkdir(parents=True, exist_ok=True)
      self.lab = stack.enter_context(NamespaceLab(self.nodes, self.setup.rails, self.rate))
      processes = stack.enter_context(Processes(self._logs))
      self._processes = processes
      self._cluster = Cluster(self.lab, self.setup.binaries, self._folder, processes, self.has_daemons)
      if self.has_daemons:
        self._cluster.start_daemons()
      self._stack = stack.pop_all()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
    with self._stack:
      for job in self._jobs:
        job.kill()

  def start(self, name: str, node: int, argv: Sequence[str]) -> ManagedProcess:
    """A program of its own in a node's namespace."""
    return self._processes.start(name, self.lab.command(node, argv))

  def begin_job(self, name: str, network: Network, per_node: int = 1, environment: dict[str, str] | None = None,
                timeout_s: float = GROUP_TIMEOUT_S, others: dict[int, dict[str, str]] | None = None) -> Job:
    """Starts the ranks and does not wait for them. `others`: ranks with another environment than `environment`."""
    setup = self.setup
    placement = Placement(self.nodes, setup.gpus, per_node)
    self._serial += 1
    name = f"{name}-{self._serial}"
    rendezvous = self._folder / f"{name}.rendezvous"

    def start(rank: int, path: str) -> ManagedProcess:
      node = placement.node(rank)
      result = rank_environment(network, placement, rank, self.lab.rails_variable(node), self.lab.management_interface(node))
      result |= {"NCCL_DEBUG": "WARN"}
      if network.kind == "r2cc":
        result |= {"R2CC_JOB": name}
        if self.has_daemons:
          result |= {"R2CC_ATTACH": str(self._cluster.attach_socket(node))}
        result |= setup.environment
      libraries = [str(setup.binaries.plugin.parent)] if network.kind == "r2cc" else []
      result |= {"LD_LIBRARY_PATH": ":".join([*libraries, *([setup.library_path] if setup.library_path else [])])}
      if setup.nccl is not None:
        result |= {"LD_PRELOAD": str(setup.nccl)}
      result |= (others or {}).get(rank, environment or {})
      # Past `ip`, whose own libraries must not be the rank's.
      settings = [f"{key}={value}" for key, value in result.items()]
      argv = ["env", *settings, setup.python, str(setup.program), "_rank", "--control", path, "--rendezvous", str(rendezvous),
              "--rank", str(rank), "--world", str(placement.world), "--gpu", str(placement.gpu(rank)), "--timeout-s", f"{timeout_s:g}",
              "--device", setup.device]
      return self._processes.start(f"{name}-rank{rank}", self.lab.command(node, argv))

    job = Job(name, placement.world, self._folder, start)
    self._jobs.append(job)
    self._keep_to_processors(job, 0)
    return job

  def start_job(self, name: str, network: Network, **more: Any) -> Job:
    begin_s = time.monotonic()
    job = self.begin_job(name, network, **more)
    versions = job.wait_ready()
    self.setup.print_line(f"  {job.name}: {job.world} ranks ready after {time.monotonic() - begin_s:.1f} s; "
                          + ", ".join(f"{key} {value}" for key, value in versions.items() if value))
    return job

  def deal_processors(self, deal: int) -> None:
    """With --own-processors: every node keeps to others from now on, the same for all jobs."""
    for job in self._jobs:
      self._keep_to_processors(job, deal)

  def _keep_to_processors(self, job: Job, deal: int) -> None:
    if not self.setup.cores:
      return
    processors = dealt_processors(self.setup.cores, self.nodes, deal)
    for rank in range(job.world):
      job.keep_to_processors(rank, processors[rank // (job.world // self.nodes)])

  def end_job(self, job: Job) -> dict[str, Any]:
    """JobBroken if a rank ended otherwise than well: a crash at the end is a fault, too."""
    self._jobs.remove(job)
    try:
      result = job.quit()
      if set(result["exit_codes"]) != {0}:
        raise JobBroken(f"{job.name}: the ranks' exit codes are {result['exit_codes']}, {result['exit_s']} s after they were asked to end")
      return result
    finally:
      job.kill()

  # Daemons.

  def ctl(self, node: int, *arguments: str) -> str:
    return self._cluster.ctl(node, *arguments)

  def ctl_json(self, node: int, *arguments: str) -> Any:
    return self._cluster.ctl_json(node, *arguments)

  def events(self, node: int) -> list[dict[str, Any]]:
    return self._cluster.events(node)

  def ways(self, node: int) -> list[dict[str, Any]]:
    """What the daemon of `node` knows of communicators whose AllReduces go another way."""
    return [way for job in self.ctl_json(node, "jobs").get("jobs", []) for way in job.get("ways", [])]

  # Rails.

  def sent_bytes(self, job: Job, rail: RailId) -> int:
    """As the kernel counts; every rank lives in its node's namespace."""
    rank = rail.node * (job.world // self.nodes)
    text = pathlib.Path(f"/proc/{job.pid(rank)}/net/dev").read_text(encoding="ascii")
    return traffic.sent_bytes(text)[f"rail{rail.rail}"]

  def wait_back(self, job: Job, rails: list[RailId], nudge: Callable[[], None] | None = None) -> float | None:
    """Until each carries data again, in seconds; None: one did not in time. `nudge` makes a paused job move something."""
    if self.setup.device == "cpu":
      return 0.0  # gloo travels beside the rails
    begin_s = time.monotonic()
    before = {rail: self.sent_bytes(job, rail) for rail in rails}
    while time.monotonic() < begin_s + BACK_S:
      if nudge is not None:
        nudge()
      job.look(TICK_S)
      if all(self.sent_bytes(job, rail) - before[rail] >= BACK_BYTES for rail in rails):
        return time.monotonic() - begin_s
    return None

  def all_rails(self) -> list[RailId]:
    """Nodes in turn, so that neighbours in the list are of different nodes."""
    return [RailId(node, rail) for rail in range(self.setup.rails) for node in range(self.nodes)]
