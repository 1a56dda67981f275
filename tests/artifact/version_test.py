"""What --version says: one release everywhere, one number for each protocol, and the revision in what a package installs."""

import os
import pathlib
import re
import stat
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from deploy.debian import elf_stamp

REVISION = "0123456789ab-dirty"
UNKNOWN = "unknown: not from a package"


def _protocols(text: str) -> dict[str, str]:
  """"peers 2, wire 4 to 5" by name."""
  return dict(part.split(" ", 1) for part in text.split(", "))


class VersionTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    paths = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    cls.programs = {path.name: path for path in paths if path.suffix != ".so" and path.name != "drill"}
    cls.plugin, cls.drill = [path for path in paths if path.suffix == ".so"][0], [path for path in paths if path.name == "drill"][0]
    assert sorted(cls.programs) == ["r2cc-perf", "r2ccctl", "r2ccd"], cls.programs

  def setUp(self):
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

  def stamped(self, path: pathlib.Path) -> pathlib.Path:
    to = self.folder / path.name
    elf_stamp.stripped_and_stamped(path, to, "7.8.9", REVISION)
    to.chmod(to.stat().st_mode | stat.S_IXUSR)
    return to

  def version(self, path: pathlib.Path) -> tuple[str, str, str, str]:
    """Name, release, revision, protocols."""
    output = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.fullmatch(r"(\S+) (\S+) \(revision (.*)\)\nprotocols: (.*)\n", output)
    self.assertIsNotNone(found, output)
    return found.groups()

  def start_line(self, plugin: pathlib.Path) -> str:
    """What the plugin says of itself as a job starts."""
    job = subprocess.run([self.programs["r2cc-perf"], "sendrecv", "--plugin", plugin, "--ranks", "2", "-b", "8", "-n", "1", "--debug"],
                         check=True, capture_output=True, text=True, timeout=60,
                         env={"R2CC_RAILS": "127.0.0.1", "R2CC_LOG": "info", "R2CC_ATTACH": "none", "R2CC_OOB_IFNAME": "127.0.0.1",
                              "PATH": os.environ["PATH"]})
    # Each rank says it.
    lines = [re.sub(r"^r2cc-perf\[\d\] ", "", line) for line in (job.stdout + job.stderr).splitlines() if "revision" in line]
    self.assertEqual((len(lines), len(set(lines))), (2, 1), job.stdout + job.stderr)
    return lines[0]

  def test_one_release_everywhere_and_no_revision_in_what_bazel_built(self):
    versions = {name: self.version(path) for name, path in self.programs.items()}
    self.assertEqual({name: of[0] for name, of in versions.items()}, {name: name for name in self.programs})
    self.assertEqual(len({of[1] for of in versions.values()}), 1)
    self.assertEqual({of[2] for of in versions.values()}, {UNKNOWN})
    self.assertIn(f"R2CC: {versions['r2ccd'][1]} (revision {UNKNOWN}), ", self.start_line(self.plugin))

  def test_a_stamped_program_is_the_same_program_with_another_release(self):
    for name, path in self.programs.items():
      _, _, _, protocols = self.version(path)
      self.assertEqual(self.version(self.stamped(path)), (name, "7.8.9", REVISION, protocols))
    self.assertIn(f"R2CC: 7.8.9 (revision {REVISION}), ", self.start_line(self.stamped(self.plugin)))

  def test_daemon_and_plugin_name_the_protocols_between_them_alike(self):
    daemon = _protocols(self.version(self.programs["r2ccd"])[3])
    plugin = _protocols(re.search(r"\), (.*)$", self.start_line(self.plugin)).group(1))
    self.assertEqual({name for name in daemon.keys() & plugin.keys()}, {"attach", "page", "ring"})
    for name in ("attach", "page", "ring"):
      self.assertEqual(daemon[name], plugin[name])
    self.assertEqual(daemon.keys() - plugin.keys(), {"peers", "probe", "state"})
    self.assertEqual(plugin.keys() - daemon.keys(), {"wire"})

  def test_the_drill_names_its_own_and_that_of_what_it_starts(self):
    output = subprocess.run([self.drill, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()
    release = self.version(self.programs["r2ccd"])[1]
    self.assertEqual(output[0], f"r2cc-drill {release} (revision {UNKNOWN})")
    self.assertEqual([line.split()[0] for line in output[1::2]], ["r2ccd", "r2ccctl", "r2cc-perf"])

  def test_foreign_files_and_long_releases_are_refused(self):
    with self.assertRaisesRegex(elf_stamp.StampError, "no section .r2cc_release"):
      elf_stamp.stripped_and_stamped(pathlib.Path("/bin/true"), self.folder / "true", "1", "2")
    with self.assertRaisesRegex(elf_stamp.StampError, "at most 31"):
      elf_stamp.stamp("1" * 32, "")
