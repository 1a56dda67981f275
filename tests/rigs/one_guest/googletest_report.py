"""What a program of GoogleTest reported."""

import xml.etree.ElementTree as ElementTree


def skipped_cases(xml: str) -> tuple[list[str], int]:
  """The tests that were skipped, with their reasons, and how many ran at all."""
  cases = [case for case in ElementTree.fromstring(xml).iter("testcase") if case.get("status") == "run"]
  skipped = [f"{case.get('classname')}.{case.get('name')}: {(node.get('message') or '').strip()}"
             for case in cases for node in case.iter("skipped")]
  return skipped, len(cases)
