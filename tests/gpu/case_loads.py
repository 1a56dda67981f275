"""Does stock NCCL load the plugin and carry everything over it: every collective, type, algorithm and protocol."""

import pathlib
import re
from typing import Any

from tests.gpu import values
from tests.gpu.bench import MIB, Context
from tests.gpu.collective_names import CPU_OPERATIONS, OPERATIONS
from tests.gpu.job import Job, JobBroken
from tests.gpu.placement import R2CC
from tests.gpu.stage import Stage

SIZES = (4096, 4 * MIB)
ITERATIONS = 3
# NCCL has trees for all_reduce alone.
COMBINATIONS = (("Ring", "Simple"), ("Ring", "LL"), ("Ring", "LL128"), ("Tree", "Simple"), ("Tree", "LL"), ("Tree", "LL128"))
CHECK_S = 120.0
_SYSTEM_NCCL = ("/usr/lib/x86_64-linux-gnu/libnccl.so.2", "/usr/local/lib/libnccl.so.2", "/usr/lib64/libnccl.so.2")
_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
_CARRIED = re.compile(r"via NET/(\w+)")
_NETWORK = re.compile(r"(?:Using network|Assigned NET plugin) (\w+)")


def evidence(log: str) -> dict[str, Any]:
  """What NCCL's own log says of its version and of who carries its channels. Pure."""
  version, network = _VERSION.search(log), _NETWORK.search(log)
  return {"nccl": version[1] if version else None, "network": network[1] if network else None,
          "channels": {name: len(re.findall(rf"via NET/{name}\b", log)) for name in sorted(set(_CARRIED.findall(log)))}}


def _operations(context: Context, algorithm: str) -> list[str]:
  if algorithm == "Tree":
    return ["all_reduce"]
  return list(OPERATIONS if context.setup.device == "cuda" else CPU_OPERATIONS)


def _check(context: Context, case: str, label: str, algorithm: str, protocol: str, job: Job) -> None:
  """One job, whose ranks are ready."""
  variant = f"{label} {algorithm} {protocol}"
  command = {"do": "check", "operations": _operations(context, algorithm), "dtypes": list(values.EXACT_MAX),
             "sizes": [context.setup.size(size) for size in SIZES], "iterations": ITERATIONS}
  answers = job.ask(command, CHECK_S)
  wrong: dict[str, int] = {}
  for answer in answers:
    for name, count in answer["wrong"].items():
      wrong[name] = wrong.get(name, 0) + count
  found = evidence(job.logs(0))
  loaded = context.setup.device == "cuda" and found["network"] == "R2CC"
  context.results.add(case, variant, loaded=loaded, **found, passed=len(answers[0]["passed"]), wrong=sum(wrong.values()), wrong_in=wrong,
                      passed_names=answers[0]["passed"] if (algorithm, protocol) == COMBINATIONS[0] else None,
                      refused=answers[0]["refused"])
  if wrong or (context.setup.device == "cuda" and not loaded):
    raise JobBroken(f"{variant}: {sum(wrong.values())} wrong elements, NCCL uses {found['network']}")


def loads(context: Context, case: str, daemons: bool = False) -> None:
  del daemons
  context.end_bench()
  setup = context.setup
  systems = [path for path in ([str(setup.nccl)] if setup.nccl else _SYSTEM_NCCL) if pathlib.Path(path).is_file()][:1]
  libraries = [("torch's", None)] + [("system's" if setup.nccl is None else "given", path) for path in systems]
  if setup.nccl is not None:
    libraries = libraries[1:]
  broken_variants = []
  with Stage(setup, case, setup.nodes, setup.rate) as stage:
    for label, path in libraries:
      jobs = []
      for algorithm, protocol in COMBINATIONS[:2] if setup.device == "cpu" else COMBINATIONS:
        environment = {"NCCL_ALGO": algorithm if algorithm == "Ring" else "allreduce:tree", "NCCL_PROTO": protocol, "NCCL_DEBUG": "INFO",
                       "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"} | ({"LD_PRELOAD": path} if path else {})
        jobs.append((algorithm, protocol, stage.begin_job(f"{algorithm}-{protocol}", R2CC, environment=environment)))
      for algorithm, protocol, job in jobs:
        try:
          job.wait_ready()
          _check(context, case, label, algorithm, protocol, job)
          context.results.add(case, f"{label} {algorithm} {protocol} exit", **stage.end_job(job))
        except JobBroken as broken:
          context.results.add(case, f"{label} {algorithm} {protocol}", broken=str(broken)[:600], **evidence(job.logs(0)))
          job.kill()
          broken_variants.append(f"{label} {algorithm} {protocol}")
  if broken_variants:
    raise JobBroken(f"{len(broken_variants)} jobs broke: {', '.join(broken_variants)}")
