"""Two nodes as a launcher of jobs sees them: a network, a host name and a run directory each, a daemon, and a user who is not root."""

import json
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest
from typing import Callable

from testing.lab import namespaces
from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import LabError
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, keep_test_logs

USER = pwd.getpwnam("nobody")
JOB = "train"
_RAILS = ("rail0", "rail1")
_ROOT_PORT = 7500
# More than probes and greetings make in a test.
_MUCH_BYTES = 10 << 20
# What a process of another user needs to go to another node, as it would by ssh; gone there.
_TO_ENTER = "+sys_admin,+sys_ptrace,+sys_chroot"


class LaunchCase(unittest.TestCase):
  """Nodes n0 and n1. `programs`: what the launcher consists of."""

  programs: tuple[str, ...] = ()

  @classmethod
  def setUpClass(cls) -> None:
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")
    for program in cls.programs:
      if shutil.which(program) is None:
        raise unittest.SkipTest(f"needs launchers: {program} is not installed")
    namespaces.sweep()

  def setUp(self) -> None:
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-launch-", dir="/tmp")))
    self.folder.chmod(0o755)  # other users come in
    logs = self.folder / "logs"
    logs.mkdir()
    self.addCleanup(keep_test_logs, logs, self.id())
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2))
    self.processes = self.enterContext(Processes(logs))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.processes)
    self.cluster.start_daemons()
    self.root = f"{self.lab.management_address(0)}:{_ROOT_PORT}"
    # Where a user can read them, as where they are built he cannot.
    self.library_dir = self.folder / "lib"
    self.library_dir.mkdir()
    shutil.copy(self.cluster.binaries.plugin, self.library_dir)
    self.perf = shutil.copy(self.cluster.binaries.perf, self.folder / "r2cc-perf")
    self.home = self.folder / "home"
    self.home.mkdir()
    os.chown(self.home, USER.pw_uid, USER.pw_gid)
    # The same path on each node, and there the node's own directory.
    self.run_dir = self.folder / "run"
    self.run_dir.mkdir()
    self.holders = [self._start_node(node) for node in range(self.lab.nodes)]

  def _start_node(self, node: int) -> int:
    """The process that keeps the node's mounts and its host name."""
    script = f"mount --bind {self.cluster.run_dir(node)} {self.run_dir} && hostname n{node} && echo ready && exec sleep infinity"
    holder = self.processes.start(f"n{node}", self.lab.command(node, ["unshare", "--mount", "--uts", "sh", "-c", script]))
    self.await_that(lambda: holder.output() == "ready\n" or not holder.is_alive(), f"n{node} is not there")
    self.assertTrue(holder.is_alive(), holder.last_lines())
    return holder.pid

  def await_that(self, condition: Callable[[], bool], otherwise: str) -> None:
    self.assertTrue(wait_until(condition, PATIENCE_S, 0.1), otherwise)

  def run_on(self, node: int, argv: list[str]) -> str:
    """Standard output of a command of root's on `node`; it may fail."""
    return subprocess.run(self.on(node) + argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout

  def on(self, node: int) -> list[str]:
    """What makes a command one of root's on `node`."""
    return ["nsenter", "--target", str(self.holders[node]), "--net", "--mount", "--uts"]

  def start_as_user(self, name: str, script: str, enters: bool = False) -> ManagedProcess:
    """A shell script of the user on n0, in the environment of a fresh login. `enters`: it may use remote_shell()."""
    user = ["setpriv", f"--reuid={USER.pw_uid}", f"--regid={USER.pw_gid}", "--clear-groups"]
    user += [f"--inh-caps={_TO_ENTER}", f"--ambient-caps={_TO_ENTER}"] if enters else []
    login = ["env", "-i", "PATH=/usr/bin:/bin:/usr/sbin", f"HOME={self.home}", "sh", "-c", f"cd {self.home}\n{script}"]
    return self.processes.start(name, [*self.on(0), *user, *login])

  def remote_shell(self) -> pathlib.Path:
    """What ssh is elsewhere: [-OPTION...] ADDRESS COMMAND..., which nothing of the caller's environment goes with."""
    path = self.folder / "remote_shell"
    cases = "".join(f"  {self.lab.management_address(node)}) node={holder} ;;\n" for node, holder in enumerate(self.holders))
    path.write_text('#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nhost=$1\nshift\ncase $host in\n' + cases +
                    '  *) echo "there is no node $host" >&2; exit 255 ;;\nesac\n'
                    f'exec env -i PATH=/usr/bin:/bin:/usr/sbin HOME={self.home} nsenter --target "$node" --net --mount --uts '
                    'setpriv --ambient-caps=-all --inh-caps=-all sh -c "$*"\n', encoding="utf-8")
    path.chmod(0o755)
    return path

  def printed_lines(self, launcher: str) -> str:
    """What `r2ccctl job env` prints for this cluster."""
    argv = [str(self.cluster.binaries.ctl), "--run_dir", str(self.run_dir), "job", "env", launcher, "--library_dir",
            str(self.library_dir), "--rails", ",".join(_RAILS), "--job", JOB]
    return self.run_on(0, argv)

  def perf_command(self) -> str:
    """A rank that knows nothing of the cluster but where rank 0 is; it ends when it is asked to."""
    flags = ["--plugin", "r2cc", "--root", self.root, "-b", "1M", "--seconds", "600", "--timeout", "60", "--json"]
    return shlex.join([str(self.perf), *flags])

  def jobs(self, node: int) -> list[dict]:
    return self.cluster.ctl_json(node, "jobs").get("jobs", [])

  def expect_attached_and_right(self, launcher: ManagedProcess, output: pathlib.Path | None = None) -> None:
    """One rank of the user on each node is attached to the node's daemon; when it is asked to stop, the job ends and was right. `output`:
    what the ranks say, if it is not the launcher's."""
    state_text = lambda: f"{[self.jobs(node) for node in range(self.lab.nodes)]}\n{launcher.output()[-1000:]}\n{launcher.last_lines(20)}"
    attached = lambda: all(len(self.jobs(node)) == 1 for node in range(self.lab.nodes))
    self.await_that(lambda: attached() or not launcher.is_alive(), "no job is attached")
    self.assertTrue(launcher.is_alive(), state_text())
    for node in range(self.lab.nodes):
      job = self.jobs(node)[0]
      self.assertEqual((job["job"], job["uid"]), (JOB, USER.pw_uid), job)
      self.assertEqual({rail["nic"] for rail in job["rails"]}, set(_RAILS), job)
    moved = lambda: min(self.lab.counters(0)[rail].sent_bytes for rail in _RAILS)
    self.await_that(lambda: moved() > _MUCH_BYTES, f"nothing travels: {state_text()}")
    os.kill(int(self.jobs(0)[0]["pid"]), signal.SIGINT)  # rank 0
    self.assertEqual(launcher.wait(PATIENCE_S), 0, state_text())
    printed = launcher.output() if output is None else output.read_text(encoding="utf-8")
    reports = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    self.assertEqual([(report["pass"], report["wrong_elements"]) for report in reports], [(True, 0)], printed)
    self.await_that(lambda: not self.jobs(0) and not self.jobs(1), state_text())

  def option_line(self, lines: str, head: str) -> str:
    """The command in the comment below `head`, without what stands for the user's own words."""
    comments = lines.splitlines()
    line = comments[comments.index(head) + 1]
    if not (line.startswith("#   mpirun ") and line.endswith(" ...")):
      raise LabError(f"'{line}' is no command of mpirun")
    return line.removeprefix("#   mpirun ").removesuffix(" ...")
