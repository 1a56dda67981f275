"""One r2cc-perf run with all ranks on this machine's loopback addresses, and what it measured."""

import dataclasses
import json
import pathlib
import subprocess
from typing import Any, Mapping, Sequence

from testing.lab.processes import clean_environment

RANKS = 2
_TIMEOUT_S = 120


class RunFailed(Exception):
  """A run did not end well; the text is one line for a person."""


@dataclasses.dataclass(frozen=True)
class Measured:
  """One size of one run."""
  size_bytes: int
  time_us: float
  time_us_median: float
  busbw_gbps: float
  cpu_s_per_gb: float  # user and system time of all ranks for each 1e9 bytes that a rank sent to another


def sent_bytes(size_bytes: int, ranks: int) -> float:
  """What all ranks together send in a ring all_reduce."""
  return 2 * (ranks - 1) * size_bytes


def parse_report(report: Mapping[str, Any]) -> list[Measured]:
  """r2cc-perf's JSON object. Pure."""
  if report.get("pass") is not True:
    raise RunFailed(f"r2cc-perf did not pass: {report.get('error', 'wrong data')}")
  ranks = int(report["ranks"])
  return [Measured(row["size_bytes"], row["time_us"], row["time_us_median"], row["busbw_gbps"],
                   row["cpu_us"] * 1e-6 / (sent_bytes(row["size_bytes"], ranks) * 1e-9)) for row in report["rows"]]


def rails_variable(rails: int) -> str:
  return ",".join(rail_addresses(rails))


def rail_addresses(rails: int) -> list[str]:
  return [f"127.0.0.{rail + 1}" for rail in range(rails)]


def run(perf: pathlib.Path, plugin: pathlib.Path, rails: int, flags: Sequence[str], environment: Mapping[str, str]) -> list[Measured]:
  """Data and slots are not checked in here: that costs both sides the same, and would hide a difference."""
  argv = [str(perf), "all_reduce", "--plugin", str(plugin), "--ranks", str(RANKS), "--channels", str(rails), "--json", "--progress", "0",
          *flags]
  variables = {"R2CC_RAILS": rails_variable(rails), "R2CC_ATTACH": "none", "R2CC_OOB_IFNAME": "lo"} | dict(environment)
  try:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=clean_environment(variables))
  except subprocess.TimeoutExpired as error:
    raise RunFailed(f"{plugin.name} on {rails} rails did not end within {_TIMEOUT_S} s") from error
  try:
    report = json.loads(done.stdout.strip().splitlines()[-1])
  except (IndexError, ValueError) as error:
    raise RunFailed(f"{plugin.name} on {rails} rails ended with {done.returncode}: {' '.join(done.stderr.split())[-300:]}") from error
  return parse_report(report)
