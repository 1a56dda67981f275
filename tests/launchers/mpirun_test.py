"""What `r2ccctl job env mpirun` prints, and nothing else, makes a job of Open MPI's or MPICH's mpirun attach on both of its nodes."""

from tests.launchers.nodes import LaunchCase


class OpenMpi(LaunchCase):

  programs = ("mpirun.openmpi", "nsenter", "setpriv")

  def test_a_job_attaches(self):
    lines = self.printed_lines("mpirun")
    hosts = ",".join(f"{self.lab.management_address(node)}:1" for node in range(self.lab.nodes))
    command = (f"exec mpirun.openmpi --mca plm_rsh_agent {self.remote_shell()} --mca oob_tcp_if_include mgmt0 --host {hosts} "
               f"{self.option_line(lines, '# Open MPI:')} {self.perf_command()}")
    self.expect_attached_and_right(self.start_as_user("openmpi", f"{lines}\n{command}", enters=True))


class Mpich(LaunchCase):

  programs = ("mpirun.mpich", "nsenter", "setpriv")

  def test_a_job_attaches(self):
    lines = self.printed_lines("mpirun")
    hosts = ",".join(self.lab.management_address(node) for node in range(self.lab.nodes))
    command = (f"exec mpirun.mpich -launcher ssh -launcher-exec {self.remote_shell()} -iface mgmt0 -hosts {hosts} -n 2 -ppn 1 "
               f"{self.option_line(lines, '# MPICH and Intel MPI:')} {self.perf_command()}")
    self.expect_attached_and_right(self.start_as_user("mpich", f"{lines}\n{command}", enters=True))
