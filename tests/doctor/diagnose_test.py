"""docs/operate/diagnose.md says what the programs say: each symptom is planted, and the command of its section is run."""

import os
import pathlib
import re
import shlex
import tempfile
import time
import unittest

from bazel import unittest_main
from tests.doctor import symptoms
from tests.doctor import two_nodes

# A line of the page for lines that are left out there.
LEFT_OUT = "..."


def sections(page: str) -> dict[str, list[tuple[str, list[str]]]]:
  """By heading: each command, and the lines of its output that the page has."""
  found = {}
  for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
    heading, _, body = section.partition("\n")
    found[heading.strip()] = [(block.splitlines()[0][2:], block.splitlines()[1:])
                              for block in re.findall(r"^```\n(\$ .*?)^```", body, flags=re.MULTILINE | re.DOTALL)]
  return found


class DiagnoseTest(unittest.TestCase):

  def setUp(self):
    if os.geteuid() != 0:
      self.skipTest("needs root: makes network namespaces")
    self.page, self.r2ccd, self.r2ccctl = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]

  def printed(self, nodes: two_nodes.TwoNodes, command: str) -> list[str]:
    program, *arguments = shlex.split(command)
    self.assertEqual(program, "r2ccctl")
    done = two_nodes.run("ip", "netns", "exec", nodes.netns(0), str(self.r2ccctl), "--run_dir", str(nodes.run_dir(0)), *arguments,
                         check=False, environment=symptoms.environment(nodes))
    return symptoms.plain(done.stdout + done.stderr, nodes.folder)

  def has(self, wanted: list[str], printed: list[str]) -> str:
    """The first line of the page that was not said behind the one before it; empty: all were."""
    at = 0
    for line in wanted:
      if line == LEFT_OUT:
        continue
      if line not in printed[at:]:
        return line
      at = printed.index(line, at) + 1
    return ""

  def test_every_symptom_of_the_page(self):
    page = sections(self.page.read_text(encoding="utf-8"))
    self.assertLessEqual(symptoms.TESTED_ELSEWHERE, set(page))
    page = {heading: commands for heading, commands in page.items() if heading not in symptoms.TESTED_ELSEWHERE}
    self.assertEqual(list(page), list(symptoms.SYMPTOMS), "each section has its plant")
    for heading, commands in page.items():
      with self.subTest(heading):
        self.assertTrue(commands, "a section shows a command")
        with tempfile.TemporaryDirectory(prefix="r2cc-diagnose-", dir="/tmp") as folder:
          with two_nodes.TwoNodes(pathlib.Path(folder), self.r2ccd, self.r2ccctl) as nodes:
            symptoms.SYMPTOMS[heading](nodes)
            for command, lines in commands:
              wanted = symptoms.plain("\n".join(lines), nodes.folder)
              end = time.monotonic() + two_nodes.PATIENCE_S
              while missing := self.has(wanted, printed := self.printed(nodes, command)):
                if time.monotonic() > end:
                  self.fail(f"`{command}` does not say {missing!r} but\n" + "\n".join(printed))
                time.sleep(0.2)
