"""The image as a whole: how large, the same digest twice, sound to others' eyes; and the drill with its binaries and libraries."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

from bazel import unittest_main
from deploy.drill import story
from deploy.drill.record import Record, judge
from deploy.drill.runner import Runner
from testing.lab.cluster import Binaries, Cluster, JobOptions
from testing.lab.lab import monotonic_ns
from testing.lab.loopback import LoopbackLab
from testing.lab.processes import Processes
from tests.kubernetes import pod

SIZE_MAX = 40 << 20
# Runs a program of the image as itself, with the image's loader and libraries, and this machine's processes and /tmp.
THROUGH = """#!/bin/sh
exec unshare --mount -- sh -c '
  root=$0 program=$1; shift
  for folder in proc sys dev tmp; do mount --rbind /$folder "$root/$folder" || exit 125; done
  exec chroot "$root" "$program" "$@"' {root} {program} "$@"
"""


class Silent:
  """Nobody watches this drill."""

  def __getattr__(self, name):
    return lambda *_: None


class ImageTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    archive, cls.writer, *cls.sources = unittest_main.test_args()
    cls.archive = pathlib.Path(archive).resolve()

  def setUp(self):
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-image-", dir="/tmp")))
    self.folder.chmod(0o755)

  def test_it_is_small(self):
    with tarfile.open(self.archive.parent / "root.tar") as root:
      unpacked = sum(member.size for member in root.getmembers())
    print(f"the image: {self.archive.stat().st_size / 2**20:.1f} MiB, unpacked {unpacked / 2**20:.1f} MiB")
    self.assertLess(unpacked, SIZE_MAX)
    self.assertGreater(unpacked, 1 << 20)

  def test_made_again_it_is_the_same(self):
    again = self.folder / "again.tar"
    environment = {"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, self.writer, "--image", again, "--root", self.folder / "root.tar", *self.sources], check=True,
                   env=environment, umask=0o077)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.archive, again)]
    self.assertEqual(digests[0], digests[1])

  def test_others_find_nothing_wrong_with_it(self):
    layout = self.folder / "layout"
    with tarfile.open(self.archive) as archive:
      archive.extractall(layout)
    validate = ["oci-image-tool", "validate", "--type", "image", "--ref", "name=latest", layout]
    judged = subprocess.run(validate, capture_output=True, text=True, check=False)
    self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
    smallest = min((layout / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    smallest.write_bytes(smallest.read_bytes().replace(b"64", b"65"))
    self.assertNotEqual(subprocess.run(validate, capture_output=True, check=False).returncode, 0, "this test could not fail")

  def test_a_drill_passes_with_its_binaries(self):
    if os.geteuid() != 0:
      self.skipTest("needs root: changes the root directory")
    root = pod.unpack_image(self.archive, self.folder)

    def through(program: str) -> pathlib.Path:
      path = self.folder / pathlib.Path(program).name
      path.write_text(THROUGH.format(root=root, program=program), encoding="utf-8")
      path.chmod(0o755)
      return path

    plugin = root / "usr/lib/x86_64-linux-gnu/libnccl-net-r2cc.so"
    version = subprocess.run([through("/usr/sbin/r2ccd"), "--version"], check=True, capture_output=True, text=True).stdout
    self.assertRegex(version, r"\d+\.\d+\.\d+")
    binaries = Binaries(daemon=through("/usr/sbin/r2ccd"), ctl=through("/usr/bin/r2ccctl"), perf=through("/usr/bin/r2cc-perf"),
                        plugin=plugin)
    # The plugin's path is the same inside: /tmp is there, too.
    binaries.check()
    steps = story.story_steps(story.QUICK, True, True)
    lab = LoopbackLab(4, 4)
    record = Record(lab.mode, lab.nodes, lab.rate_gbps, begin_ns=monotonic_ns())
    folder = self.folder / "drill"
    folder.mkdir()
    with lab, Processes(folder) as processes:
      cluster = Cluster(lab, binaries, folder, processes)
      cluster.start_daemons()
      mapped = pathlib.Path(f"/proc/{cluster.daemon(0).pid}/maps").read_text(encoding="ascii")
      self.assertIn(f"{root}/lib/x86_64-linux-gnu/libc.so.6", mapped)
      Runner(cluster, record, Silent(), JobOptions()).run(steps)
    record.end_ns = monotonic_ns()
    self.assertEqual(judge(record, sum(step.action is story.Action.STOP_JOB for step in steps)), [])
