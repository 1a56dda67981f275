"""The wheel, as users have it: installed into a virtual environment, `python -m r2cc run -- torchrun ...` on each node, and a cut."""

import json
import pathlib
import subprocess
import tempfile
import time
from typing import Any

from testing.lab.lab import RailId
from testing.lab.processes import ManagedProcess
from tests.gpu import tools
from tests.gpu.bench import Context
from tests.gpu.job import JobBroken
from tests.gpu.placement import R2CC, Placement, rank_environment
from tests.gpu.stage import Setup, Stage

NODES, RATE = 2, "2gbit"
BEFORE_S, AFTER_S = 3.0, 5.0
INSTALL_S, START_S, END_S = 180.0, 120.0, 30.0
# What `python -m r2cc run` is there to set.
_BY_THE_WHEEL = ("NCCL_NET", "NCCL_NET_PLUGIN", "LD_LIBRARY_PATH")


def _run(argv: list[str], what: str) -> str:
  try:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S, check=False)
  except (OSError, subprocess.TimeoutExpired) as error:
    raise tools.Missing(f"{what}: {error}") from error
  if done.returncode != 0:
    raise tools.Missing(f"{what}: {' '.join(done.stderr.split())[-300:]}")
  return done.stdout.strip()


def _installed(setup: Setup, folder: pathlib.Path) -> pathlib.Path:
  """The Python of a fresh environment that has the wheel, and PyTorch from where it is."""
  wheels = sorted((setup.program.parent / "deploy/wheel").glob("r2cc-*.whl"))
  if len(wheels) != 1:
    raise tools.Missing(f"there is no wheel beside {setup.program}; unpack the kit as a whole, or build //tests/gpu:kit")
  where = "import sysconfig; print(sysconfig.get_path('purelib'))"
  theirs = _run([setup.python, "-c", where], "PyTorch's folder")
  _run([setup.python, "-m", "venv", str(folder)], "no virtual environment")
  python = folder / "bin/python"
  _run([str(python), "-m", "pip", "install", "--no-index", "--no-deps", str(wheels[0])], "pip does not install the wheel")
  (pathlib.Path(_run([str(python), "-c", where], "its folder")) / "pytorch.pth").write_text(theirs + "\n", encoding="utf-8")
  return python


def _start(stage: Stage, python: pathlib.Path, node: int, port: int) -> ManagedProcess:
  placement = Placement(NODES, stage.setup.gpus)
  result = rank_environment(R2CC, placement, node, stage.lab.rails_variable(node), stage.lab.management_interface(node))
  result = {name: value for name, value in result.items() if name not in _BY_THE_WHEEL}
  result |= {"CUDA_VISIBLE_DEVICES": str(placement.gpu(node)), "R2CC_JOB": "wheel", "NCCL_DEBUG": "WARN"} | stage.setup.environment
  if stage.setup.library_path:
    result["LD_LIBRARY_PATH"] = stage.setup.library_path
  training = pathlib.Path(__file__).parent / "wheel_training.py"
  argv = ["env", *(f"{key}={value}" for key, value in result.items()), str(python), "-m", "r2cc", "run", "--", str(python), "-m",
          "torch.distributed.run", "--nnodes", str(NODES), "--nproc-per-node", "1", "--node-rank", str(node),
          "--master-addr", stage.lab.management_address(0), "--master-port", str(port), str(training), str(BEFORE_S + AFTER_S)]
  return stage.start(f"node{node}", node, argv)


def _conditions(process: ManagedProcess) -> list[dict[str, Any]]:
  return [json.loads(line) for line in process.output().splitlines() if line.startswith("{") and line.endswith("}")]


def wheel(context: Context, case: str, daemons: bool = False) -> None:
  context.end_bench()
  with tempfile.TemporaryDirectory(prefix="r2cc-wheel-") as folder, Stage(context.setup, case, NODES, RATE, daemons) as stage:
    python = _installed(context.setup, pathlib.Path(folder))
    port = stage.lab.free_port(0)
    agents = [_start(stage, python, node, port) for node in range(NODES)]

    def wait(condition: str, limit_s: float) -> None:
      deadline_s = time.monotonic() + limit_s
      while not any(condition in line for line in _conditions(agents[0])):
        if time.monotonic() > deadline_s or any(agent.returncode not in (None, 0) for agent in agents):
          raise JobBroken(f"no '{condition}': " + " || ".join(agent.last_lines() for agent in agents))
        time.sleep(0.05)

    wait("began", START_S)
    time.sleep(BEFORE_S)
    stage.lab.cut(RailId(1, 0))
    wait("iterations", AFTER_S + END_S)
    codes = [agent.wait(END_S) for agent in agents]
    lines = [line for agent in agents for line in agent.errors().splitlines() if " survived" in line]
    found = _conditions(agents[0])[-1]
    context.results.add(case, "torchrun, a cut", nodes=NODES, rate=RATE, exit_codes=codes,
                        line=lines[-1][-200:] if lines else None, **found)
    if codes != [0] * NODES or found["wrong"] or found["after_cut"] < 1 or not lines or ": 0 NIC" in lines[-1]:
      raise JobBroken(f"exit codes {codes}, {found}, {lines}: " + " || ".join(agent.last_lines() for agent in agents))
