"""Runs the tests of the page's scripts, and looks at what the page is made of."""

import json
import os
import re
import shutil
import subprocess
import unittest

from daemon.http.page import embed

_HERE = os.path.dirname(os.path.abspath(__file__))
# The container image has little room left, and a page of a sick cluster is loaded over slow links.
BYTES_MAX = 60_000


def _read(name):
  with open(os.path.join(_HERE, name), encoding="utf-8") as file:
    return file.read()


def _names(*ends):
  return sorted(name for name in os.listdir(_HERE) if name.endswith(ends))


class PageTest(unittest.TestCase):

  def test_scripts(self):
    if shutil.which("node") is None:
      self.skipTest("needs node: bazelw installs bazel/packages/node.txt")
    folder = os.path.join(os.environ["TEST_TMPDIR"], "page")
    os.makedirs(folder)
    for name in _names(".js", ".mjs"):
      shutil.copy(os.path.join(_HERE, name), folder)
    with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as file:
      json.dump({"type": "module"}, file)
    run = subprocess.run(["node", "--test", "page_test.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
    self.assertRegex(run.stdout, r"pass [1-9]", "node ran no test")

  def test_the_page_is_small(self):
    total = sum(len(embed.shortened(name, _read(name)).encode()) for name in _names(".html", ".css", ".js", ".svg"))
    self.assertLess(total, BYTES_MAX)

  def test_nothing_is_made_of_markup_or_asked_elsewhere(self):
    for name in _names(".html", ".css", ".js"):
      text = _read(name).replace("http://www.w3.org/2000/svg", "")
      unsafe = r"https?://|\binnerHTML|\bouterHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bstyle="
      self.assertIsNone(re.search(unsafe, text), name)

  def test_each_file_is_served_and_imported(self):
    imported = set(re.findall(r"from '\./(\w+\.js)'", "".join(_read(name) for name in _names(".js"))))
    self.assertEqual(imported | {"main.js"}, set(_names(".js")))

  def test_a_long_file_is_parted_into_literals(self):
    text = "x" * (2 * embed.LITERAL_MAX + 1)
    self.assertEqual(re.findall(r'R"page\((.*?)\)page"', embed.literal(text)), ["x" * embed.LITERAL_MAX] * 2 + ["x"])

  def test_comments_and_indentation_stay_behind(self):
    self.assertEqual(embed.shortened("a.js", "// Why.\n  f();\n\n"), "f();\n")
    self.assertEqual(embed.shortened("index.html", "  <p>\n"), "  <p>\n")
