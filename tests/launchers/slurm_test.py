"""What `r2ccctl job env slurm` prints, and nothing else, makes a job of a real Slurm attach on both of its nodes: in the batch script, or
in the TaskProlog for all jobs."""

from tests.launchers.nodes import LaunchCase
from tests.launchers.slurm import Slurm


class SlurmLaunch(LaunchCase):

  programs = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "nsenter", "setpriv")

  def setUp(self) -> None:
    super().setUp()
    self.slurm = Slurm(self)

  def srun(self) -> str:
    return f"srun --nodes 2 --ntasks 2 {self.perf_command()}"

  def test_by_the_lines_in_the_batch_script(self):
    self.slurm.start()
    script = self.home / "batch"
    script.write_text(f"#!/bin/sh\n{self.printed_lines('slurm')}\n{self.srun()}\n", encoding="utf-8")
    command = f"sbatch --wait --nodes 2 --output {self.home}/batch.out --error {self.home}/batch.err {script}"
    batch = self.start_as_user("sbatch", f"export SLURM_CONF={self.slurm.configuration}\nexec {command}")
    self.expect_attached_and_right(batch, self.home / "batch.out")

  def test_by_the_task_prolog(self):
    prolog = self.folder / "task_prolog"
    echoes = [line.removeprefix("#   ") for line in self.printed_lines("slurm").splitlines() if line.startswith("#   echo ")]
    self.assertGreater(len(echoes), 3)
    prolog.write_text("\n".join(["#!/bin/sh", *echoes]) + "\n", encoding="utf-8")
    prolog.chmod(0o755)
    self.slurm.start(f"TaskProlog={prolog}")
    step = self.start_as_user("srun", f"export SLURM_CONF={self.slurm.configuration}\nexec {self.srun()}")
    self.expect_attached_and_right(step)
