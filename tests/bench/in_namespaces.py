"""What benchmarks of daemons between network namespaces share: the folder, the lab, the processes, and the end of all of them."""

import json
import pathlib
import shutil
import sys
import tempfile
from typing import Any, Callable

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster, keep_logs
from testing.lab.lab import LabError
from testing.lab.lifetime import EndedBySignal, signals_unwind
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes

Figures = dict[str, Any]


def print_line(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def run(program: str, lab: NamespaceLab, measure: Callable[[Cluster, Processes], Figures], as_json: bool,
        plugin: pathlib.Path | None = None, logs: pathlib.Path | None = None, tls: bool = False, daemons: bool = True) -> int:
  """Prints what `measure` finds; the program's exit code. `logs`: where to leave them. `tls`, `daemons`: see Cluster."""
  if (reason := namespaces.missing_feature()) is not None:
    print_line(f"{program}: needs root: {reason}")
    return 1
  folder = pathlib.Path(tempfile.mkdtemp(prefix="r2cc-bench-", dir="/tmp"))
  try:
    binaries = built_binaries(plugin)
    binaries.check()
    namespaces.sweep()
    with signals_unwind(), lab, Processes(folder) as processes:
      result = measure(Cluster(lab, binaries, folder, processes, daemons, tls), processes)
  except LabError as error:
    print_line(f"{program}: {error}")
    return 1
  except EndedBySignal as ended:
    print_line(f"{program}: ended by {ended}; everything it started is gone")
    return ended.exit_code
  finally:
    if logs is not None:
      keep_logs(folder, logs)
    shutil.rmtree(folder, ignore_errors=True)
  print(json.dumps(result) if as_json else "\n".join(f"{name:24} {value}" for name, value in result.items()))
  return 0
