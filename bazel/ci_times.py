"""What each test target of a run cost, the ten slowest ones, and targets beyond their budget of processor seconds.

A budget is in processor seconds, because a busy machine doubles the time on the clock and changes these little. Bazel 4.2 does not record
them: gtest_main.cc and unittest_main.py write those of the process and its children that it waited for into test.xml. A target whose
test.xml has none, because it has a main() of its own, is listed and not judged; so is a remembered result.
"""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

# Beyond its budget a target is named, beyond three times of it it fails: processors differ by less.
FAILS_AT = 3
_SLOWEST = 10


@dataclasses.dataclass
class Cost:
  """Of one target: its shards and runs together, of those that ran now."""
  wall_s: float = 0.0
  cpu_s: float | None = None  # None: not known of all of them

  def add(self, wall_s, cpu_s):
    first = self.wall_s == 0.0 and self.cpu_s is None
    self.wall_s += wall_s
    self.cpu_s = None if cpu_s is None or (self.cpu_s is None and not first) else (self.cpu_s or 0.0) + cpu_s


def cpu_seconds(xml_text):
  """What a test.xml says of it; None: nothing."""
  try:
    return float(ElementTree.fromstring(xml_text).get("processor_seconds", ""))
  except (ElementTree.ParseError, ValueError):
    return None


def parse_budgets(text):
  """Lines of `RUN TARGET SECONDS` as a dict from (run, target); the target * is any other. ValueError: a line is none."""
  budgets = {}
  for number, line in enumerate(text.splitlines(), 1):
    words = line.split("#")[0].split()
    if not words:
      continue
    if len(words) != 3 or not re.fullmatch(r"[0-9]+", words[2]) or int(words[2]) == 0:
      raise ValueError(f"line {number} is not RUN TARGET SECONDS: {line}")
    if tuple(words[:2]) in budgets:
      raise ValueError(f"line {number}: a second budget of {words[1]}")
    budgets[words[0], words[1]] = int(words[2])
  return budgets


def slowest(costs):
  """Lines for people: `costs` is a dict from (run, target) to its Cost."""
  order = sorted(costs.items(), key=lambda item: (-item[1].wall_s, item[0]))[:_SLOWEST]
  return [f"slow: {run}: {label}: {cost.wall_s:.0f} s, " +
          ("processor seconds unknown" if cost.cpu_s is None else f"{cost.cpu_s:.0f} processor seconds")
          for (run, label), cost in order]


def judge(costs, budgets):
  """Two lists of lines: targets beyond their budget, and of these those so far beyond it that the run fails. A run without a budget for *
  is not judged."""
  warnings, failures = [], []
  for (run, label), cost in sorted(costs.items()):
    budget = budgets.get((run, label), budgets.get((run, "*")))
    if budget is None or cost.cpu_s is None or cost.cpu_s <= budget:
      continue
    line = f"{label}: {cost.cpu_s:.0f} processor seconds, its budget is {budget}"
    (failures if cost.cpu_s > FAILS_AT * budget else warnings).append(f"{run}: {line}")
  return warnings, failures
