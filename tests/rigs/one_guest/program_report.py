"""What a program that ran in a guest left: GoogleTest's report, and what the fault injector said."""

import re
import xml.etree.ElementTree as ElementTree


def skipped_cases(xml: str) -> tuple[list[str], int]:
  """The tests that were skipped, with their reasons, and how many ran at all."""
  cases = [case for case in ElementTree.fromstring(xml).iter("testcase") if case.get("status") == "run"]
  skipped = [f"{case.get('classname')}.{case.get('name')}: {(node.get('message') or '').strip()}"
             for case in cases for node in case.iter("skipped")]
  return skipped, len(cases)


def faults_injected(output: str) -> int:
  """By all processes that opened the library of tests/rigs/faulty_libibverbs, each of which says at its end how many."""
  return sum(int(count) for count in re.findall(r"^faulty_libibverbs: injected (\d+) of \d+ faults$", output, re.MULTILINE))
