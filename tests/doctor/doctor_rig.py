"""What every test of `r2ccctl doctor` stands on: two nodes, and lines that must or must not be there."""

import os
import pathlib
import shutil
import tempfile
import unittest

from bazel import unittest_main
from tests.doctor import two_nodes

CLEAN_JOB = {"NCCL_NET_PLUGIN": "r2cc", "NCCL_NET": "R2CC", "NCCL_NET_PLUGIN_REF_COUNT": "1", "R2CC_RAILS": "rail0,rail1",
             "NCCL_SOCKET_IFNAME": "=ctl0"}


class DoctorTestCase(unittest.TestCase):
  def setUp(self):
    if os.geteuid() != 0:
      self.skipTest("needs root: makes network namespaces")
    paths = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    self.r2ccd, self.r2ccctl, self.plugin, self.old_nccl, self.foreign_daemon, self.old_request = paths
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-doctor-", dir="/tmp")))
    self.folder.chmod(0o755)
    # Under its own name, alone in its directory.
    self.plugins = self.folder / "plugins"
    self.plugins.mkdir()
    shutil.copy(self.plugin, self.plugins / "libnccl-net-r2cc.so")

  def rig(self, start: bool = True, **how) -> two_nodes.TwoNodes:
    nodes = self.enterContext(two_nodes.TwoNodes(self.folder, self.r2ccd, self.r2ccctl, **how))
    if start:
      nodes.start(0)
      nodes.start(1)
      self.clean(nodes)
    return nodes

  def clean(self, nodes: two_nodes.TwoNodes) -> None:
    """Both daemons run, and their probes have been answered."""
    report = nodes.await_line(lambda report: not report["lines"])
    self.assertEqual((report["lines"], report["exit"]), ([], 0), nodes.log())

  def finds(self, nodes: two_nodes.TwoNodes, *beginnings: str, flags: tuple[str, ...] = (), **how) -> list[str]:
    """The lines that are not ok, of which some begin so."""
    def there(report):
      return all(any(line.startswith(beginning) for line in report["lines"]) for beginning in beginnings)
    report = nodes.await_line(there, *flags, **how)
    self.assertTrue(there(report), f"{beginnings} in {report['lines']}\n{nodes.log()}")
    self.assertEqual(report["exit"], 1 if any(line.startswith("FAIL") for line in report["lines"]) else 0)
    return report["lines"]

  def finds_only(self, nodes: two_nodes.TwoNodes, beginning: str, *flags: str, **how) -> None:
    """One line is not ok, and begins so. On a busy machine another may come and go."""
    def found(report):
      # Whether NCCL is installed here is none of the test's matter.
      return [line for line in report["lines"] if not line.startswith("unchecked NCCL")]
    report = nodes.await_line(lambda report: len(found(report)) == 1 and found(report)[0].startswith(beginning), *flags, **how)
    self.assertEqual([line[:len(beginning)] for line in found(report)], [beginning], found(report))

  def job(self, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(self.plugins), **CLEAN_JOB, **more}
