"""The pages as a reader gets them: sound to mandoc, and nothing missing that --help, the configuration or the plugin knows."""

import pathlib
import re
import subprocess
import unittest

from bazel import unittest_main


# scdoc writes a paragraph's mark before each heading, which means nothing.
SCDOC = "WARNING: skipping paragraph macro: PP "


def _text(page: pathlib.Path) -> str:
  """As on a terminal of more width than any command has, without bold and underline."""
  shown = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=1000", page], check=True, capture_output=True, text=True).stdout
  return re.sub(".\b", "", shown)


def _help(*command: str) -> str:
  return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout


def _flags(text: str) -> set[str]:
  """Those that --help lists, in all their spellings."""
  listed = re.findall(r"^  (-[^ ]+)", text, re.MULTILINE)
  return {flag for flags in listed for flag in flags.split(",")}


def _commands(text: str) -> list[str]:
  return re.findall(r"^  ([a-z][\w-]*) ", text.partition("\nSubcommands:\n")[2], re.MULTILINE)


class ManTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.paths = {pathlib.Path(path).name: pathlib.Path(path).resolve() for path in unittest_main.test_args()}
    cls.pages = {name: path for name, path in cls.paths.items() if re.search(r"\.\d$", name)}

  def missing(self, words, page: str) -> list[str]:
    text = _text(self.pages[page])
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]

  def test_mandoc_finds_nothing_wrong(self):
    self.assertEqual(len(self.pages), 8)
    for name, page in self.pages.items():
      with self.subTest(page=name):
        judged = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], check=False, capture_output=True, text=True)
        self.assertEqual([line for line in judged.stdout.splitlines() if SCDOC not in line], [])

  def test_mandoc_would_find_a_mistake(self):
    judged = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=".TH x 8\n.SH A\n.RE\n", check=False, capture_output=True,
                            text=True)
    self.assertTrue([line for line in judged.stdout.splitlines() if SCDOC not in line])

  def test_every_flag_of_the_programs(self):
    for program, page in (("r2ccd", "r2ccd.8"), ("r2cc-perf", "r2cc-perf.1"), ("flags", "r2cc-drill.1")):
      flags = _flags(_help(self.paths[program]))
      self.assertGreater(len(flags), 5, program)
      self.assertEqual(self.missing(flags, page), [])

  def test_every_command_and_flag_of_r2ccctl(self):
    seen = []

    def walk(*path: str):
      text = _help(self.paths["r2ccctl"], *path)
      inner = _commands(text)
      if not inner:
        seen.append(" ".join(("r2ccctl", *path)))
      self.assertEqual(self.missing(_flags(text), "r2ccctl.1"), [], path)
      for command in inner:
        walk(*path, command)

    walk()
    self.assertGreaterEqual(len(seen), 20)
    self.assertEqual(self.missing(seen, "r2ccctl.1"), [])

  def test_every_command_and_flag_of_r2cc_observe(self):
    tool = self.paths["r2cc-observe"]
    commands = re.findall(r"^    ([a-z]+) ", _help(tool), re.MULTILINE)
    self.assertGreaterEqual(len(commands), 6)
    self.assertEqual(self.missing([f"r2cc-observe {command}" for command in commands] + ["--version"], "r2cc-observe.1"), [])
    for command in commands:
      flags = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9]*", _help(tool, command).partition("options:")[2])) - {"-h"}
      self.assertIn("--help", flags)
      self.assertEqual(self.missing(flags, "r2cc-observe.1"), [], command)

  def test_every_field_of_the_configuration(self):
    names = re.findall(r"^#\s*([a-z]\w*)(?:: | \{)", self.paths["r2ccd.textproto"].read_text(encoding="utf-8"), re.MULTILINE)
    self.assertGreater(len(names), 30)
    self.assertEqual(self.missing(names, "r2ccd.textproto.5"), [])

  def test_every_variable_of_the_plugin(self):
    listed = subprocess.run([self.paths["list_variables"]], check=True, capture_output=True, text=True).stdout
    names = [line.split("\t")[0] for line in listed.splitlines()]
    self.assertGreater(len(names), 15)
    self.assertEqual(self.missing(names, "libnccl-net-r2cc.7"), [])

  def test_no_page_has_the_day_of_its_making(self):
    for name, page in self.pages.items():
      self.assertRegex(page.read_text(encoding="utf-8"), r'\.TH "[\w.-]+" "\d" "2026-11-26"', name)
