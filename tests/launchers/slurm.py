"""A cluster of Slurm on the nodes of a LaunchCase: munged, slurmctld and a slurmd a node, all of this test alone."""

import secrets

from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S
from tests.launchers.nodes import LaunchCase


class Slurm:
  """Started by start(); ends with the case's processes."""

  def __init__(self, case: LaunchCase):
    self._case = case
    self._folder = case.folder / "slurm"
    self.configuration = self._folder / "slurm.conf"

  def start(self, *more: str) -> None:
    """`more`: lines of slurm.conf."""
    case = self._case
    for folder in (self._folder, self._folder / "state", self._folder / "munge"):
      folder.mkdir()
      folder.chmod(0o755)
    key = self._folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    munge = self._folder / "munge"
    # --force: it wants a socket to which no other user could change the way, and everybody may write to /tmp.
    self._daemon("munged", 0, ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge / 'socket'}",
                               f"--pid-file={munge / 'pid'}", f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}"])
    case.await_that(lambda: (munge / "socket").is_socket(), "munged does not listen")
    self.configuration.write_text("\n".join([*self._lines(), *more]) + "\n", encoding="utf-8")
    # Named, as nodes here have no control groups from which slurmd could tell which plugin it needs; nothing uses it.
    (self._folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
    self._daemon("slurmctld", 0, ["slurmctld", "-D", "-i", "-f", str(self.configuration)])
    for node in range(case.lab.nodes):
      self._daemon(f"slurmd-n{node}", node, ["slurmd", "-D", "-N", f"n{node}", "-f", str(self.configuration)])
    case.await_that(lambda: self.ask("sinfo", "-h", "-o", "%D %T") == "2 idle\n", "Slurm's nodes are not there")
    case.addCleanup(self._cancel)

  def ask(self, *argv: str) -> str:
    """Standard output of one of Slurm's own programs."""
    return self._case.run_on(0, ["env", f"SLURM_CONF={self.configuration}", *argv])

  def _cancel(self) -> None:
    """Steps do not end with slurmd."""
    self.ask("scancel", "--partition", "all")
    wait_until(lambda: not self.ask("squeue", "-h"), PATIENCE_S, 0.1)

  def _lines(self) -> list[str]:
    case, folder = self._case, self._folder
    address = case.lab.management_address
    nodes = [f"NodeName=n{node} NodeAddr={address(node)} CPUs=1 State=UNKNOWN" for node in range(case.lab.nodes)]
    return [
        "ClusterName=r2cc",
        f"SlurmctldHost=n0({address(0)})",
        "SlurmUser=root",
        f"AuthInfo=socket={folder / 'munge' / 'socket'}",
        f"StateSaveLocation={folder / 'state'}",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        # No control groups, which belong to the machine.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        *nodes,
        "PartitionName=all Nodes=ALL Default=YES State=UP",
    ]

  def _daemon(self, name: str, node: int, argv: list[str]) -> None:
    self._case.processes.start(name, self._case.on(node) + argv)
