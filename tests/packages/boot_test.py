"""The packages in a booted Debian 12, under systemd itself: started, killed, given a wrong configuration, an operator's first mistakes,
upgraded under a job, purged."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from tests.packages import debian_root
from tests.packages import machine

NEXT = "0.99.0"
# Two loopback addresses: the job's rails, and the daemon's NICs.
CONFIG = 'node: "n0"\ndrills { allow: true }\nnics { name: "rail0" address: "127.9.0.1" }\nnics { name: "rail1" address: "127.9.0.2" }\n'
JOB = ("env R2CC_RAILS=127.9.0.1,127.9.0.2 R2CC_OOB_IFNAME=127.0.0.1 R2CC_JOB=during-upgrade r2cc-perf all_reduce --plugin r2cc --ranks 2 "
       "-b 256K --seconds 3600 --progress 0 --json")


class BootTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = debian_root.missing_feature()
    if reason is None and shutil.which("systemd-nspawn") is None:
      reason = "needs systemd-nspawn: boots a Debian"
    if reason:
      raise unittest.SkipTest(reason)
    cls.debs = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="r2cc-boot-", dir="/tmp")))
    root = cls.folder / "root"
    root.mkdir()
    debian_root.unpack(root)
    for name in ("now", "next"):
      (root / name).mkdir()
    for deb in cls.debs:
      shutil.copy(deb, root / ("next" if f"_{NEXT}_" in deb.name else "now"))
    cls.machine = machine.Machine(root)
    cls.addClassCleanup(cls.machine.close)
    cls.machine.wait_until_up()

  def run_inside(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
    return self.machine.run(*words, check=check)

  def install(self, which: str) -> None:
    self.run_inside("sh", "-c", f"dpkg --install /{which}/*.deb")

  def show(self, name: str) -> str:
    return self.run_inside("systemctl", "show", "r2ccd", "--property", name, "--value").stdout.strip()

  def until(self, there) -> None:
    self.machine.until(there)

  def until_active(self) -> None:
    self.until(lambda: self.show("ActiveState") == "active")

  def ask(self, *words: str) -> dict:
    return json.loads(self.run_inside("r2ccctl", "-o", "json", *words).stdout)

  def jobs(self) -> list[dict]:
    return self.ask("jobs").get("jobs", [])

  def processes(self, name: str) -> list[str]:
    return self.run_inside("sh", "-c", f"grep -lx {name} /proc/[0-9]*/comm || true").stdout.split()

  def configure(self, text: str) -> None:
    (self.machine.path / "etc/r2cc/r2ccd.textproto").write_text(text, encoding="utf-8")

  def check_control_directory(self) -> None:
    self.assertEqual(self.run_inside("stat", "--format", "%U:%G %a", "/run/r2cc-control").stdout.strip(), "r2ccd:r2cc 750")

  def test_from_install_to_purge(self):
    """One story, as booting is dear: each part begins where the one before has ended."""
    with self.subTest("an installed daemon runs, with nothing but what the unit gives it"):
      self.install("now")
      self.until_active()
      self.assertEqual(self.show("UnitFileState"), "enabled")
      self.assertEqual(len(self.processes("r2ccd")), 1)
      self.check_confinement()
      self.check_control_directory()
    with self.subTest("it is started again, and containers keep their directory"):
      before = self.run_inside("stat", "--format", "%i %U:%G %a", "/run/r2cc").stdout
      socket = self.attach_socket()
      # It is one process. A machine in a container may refuse systemd the whole control group.
      self.run_inside("systemctl", "kill", "--kill-whom", "main", "--signal", "KILL", "r2ccd")
      self.until(lambda: self.show("NRestarts") == "1" and self.show("ActiveState") == "active")
      self.assertEqual(self.run_inside("stat", "--format", "%i %U:%G %a", "/run/r2cc").stdout, before)
      self.assertEqual(self.attach_socket(), socket)
      self.assertIn("r2ccd:r2cc 755", before)
      self.check_control_directory()
    with self.subTest("a wrong configuration is the status line, and it does not run without its checks"):
      self.configure('node: "n0"\nlisten: 5\n')
      self.run_inside("systemctl", "restart", "--no-block", "r2ccd")
      self.until(lambda: "/etc/r2cc/r2ccd.textproto:2: " in self.run_inside("systemctl", "status", "r2ccd", check=False).stdout)
      self.assertNotEqual(self.show("ActiveState"), "active")
      self.configure(CONFIG)
      self.until_active()
    with self.subTest("a reload works on a bare Debian"):
      self.run_inside("systemctl", "reload", "r2ccd")
    with self.subTest("it starts without a NIC that is missing, and says so"):
      self.check_missing_nic()
    with self.subTest("a stopped daemon is started by what r2ccctl says"):
      self.check_start_hint()
    with self.subTest("a state file that it may not read is neither lost nor left out"):
      self.check_unreadable_state()
    with self.subTest("a key that it may not read is found as root, and what the hint says ends it"):
      self.check_key()
    with self.subTest("an upgrade restarts the daemon, the job goes on and comes back to it"):
      self.check_upgrade()
    with self.subTest("a purge stops it and leaves nothing"):
      self.run_inside("dpkg", "--purge", "r2cc-drill", "r2cc-observe", "r2cc-perf", "r2ccctl", "r2ccd", "libnccl-net-r2cc")
      self.assertEqual(self.processes("r2ccd"), [])
      left = self.run_inside("find", "/etc", "/run", "/usr", "/var", "-name", "*r2cc*", "-not", "-path", "/var/lib/dpkg/*",
                             "-not", "-path", "/run/systemd/*").stdout.split()
      self.assertEqual(left, [])
      self.assertEqual(self.run_inside("getent", "passwd", "r2ccd", check=False).stdout, "")

  def attach_socket(self) -> str:
    """The number of its file, while systemd keeps it for the next life."""
    self.until(lambda: self.show("NFileDescriptorStore") == "1")
    return self.run_inside("stat", "--format", "%i", "/run/r2cc/attach.sock").stdout

  def check_confinement(self) -> None:
    pid = self.show("MainPID")
    status = dict(line.split(":\t", 1) for line in self.run_inside("cat", f"/proc/{pid}/status").stdout.splitlines())
    self.assertEqual({name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")},
                     {"CapEff": 0, "CapPrm": 0, "CapBnd": 0, "CapAmb": 0})
    self.assertEqual(status["NoNewPrivs"], "1")
    self.assertEqual(self.run_inside("stat", "--format", "%U", f"/proc/{pid}").stdout.strip(), "r2ccd")
    self.assertTrue(self.run_inside("r2ccctl", "health").stdout.startswith("ok: "))
    self.assertRegex(self.show("StatusText"), r"^node \S+: \d+ NICs")

  def status_text(self) -> str:
    return self.run_inside("systemctl", "status", "--full", "--lines", "0", "r2ccd", check=False).stdout

  def check_missing_nic(self) -> None:
    self.configure(CONFIG + 'nics { name: "rail2" interface: "eth9" }\n')
    checked = self.run_inside("r2ccctl", "config", "check", check=False)
    self.assertEqual(checked.returncode, 1, checked.stdout)
    self.assertIn("eth9", checked.stdout + checked.stderr)
    self.run_inside("systemctl", "restart", "r2ccd")
    self.until_active()
    nics = {nic["name"]: nic["state"] for node in self.ask("nic", "list")["nodes"] for nic in node["nics"]}
    self.assertEqual(nics["rail2"], "FAILED")
    self.until(lambda: any("rail2" in alarm and "eth9" in alarm for alarm in self.ask("status")["alarms"]))
    self.configure(CONFIG)
    self.run_inside("systemctl", "restart", "r2ccd")
    self.until_active()

  def check_start_hint(self) -> None:
    self.run_inside("systemctl", "stop", "r2ccd")
    asked = self.run_inside("r2ccctl", "status", check=False)
    self.assertEqual((asked.returncode, asked.stderr.count("\n")), (1, 1), asked.stderr)
    self.assertIn("r2ccd is not running", asked.stderr)
    self.assertIn("`systemctl start r2ccd`", asked.stderr)
    self.run_inside("systemctl", "start", "r2ccd")
    self.until_active()

  def check_unreadable_state(self) -> None:
    self.run_inside("r2ccctl", "nic", "drain", "n0/rail1")
    self.run_inside("systemctl", "stop", "r2ccd")
    self.run_inside("sh", "-c", "chown root:root /var/lib/r2cc/state && chmod 600 /var/lib/r2cc/state")
    self.run_inside("systemctl", "start", "--no-block", "r2ccd")
    cure = "chown --reference=/var/lib/r2cc /var/lib/r2cc/state"
    self.until(lambda: cure in self.status_text())
    self.assertNotEqual(self.show("ActiveState"), "active")
    self.assertEqual(self.run_inside("ls", "/var/lib/r2cc").stdout.count("state.damaged"), 0)
    self.run_inside("sh", "-c", cure)
    self.until_active()
    nics = {nic["name"]: nic for node in self.ask("nic", "list")["nodes"] for nic in node["nics"]}
    self.assertTrue(nics["rail1"]["drained"], nics)
    self.run_inside("r2ccctl", "nic", "undrain", "n0/rail1")

  def check_key(self) -> None:
    self.run_inside("r2ccctl", "certs", "init", "--dir", "/root/ca")
    self.run_inside("r2ccctl", "certs", "issue", "n0", "--dir", "/root/ca")
    self.run_inside("cp", "-r", "/root/ca/n0", "/etc/r2cc/tls")
    self.configure(CONFIG + "tls { directory: \"/etc/r2cc/tls\" }\n")
    checked = self.run_inside("r2ccctl", "config", "check", check=False)
    cure = "chown r2ccd: /etc/r2cc/tls/node.key && chmod 400 /etc/r2cc/tls/node.key"
    self.assertEqual(checked.returncode, 1, checked.stdout + checked.stderr)
    self.assertIn(cure, checked.stdout + checked.stderr)
    self.run_inside("systemctl", "restart", "--no-block", "r2ccd")
    self.until(lambda: cure in self.status_text())
    self.run_inside("sh", "-c", cure)
    self.assertEqual(self.run_inside("r2ccctl", "config", "check", check=False).returncode, 0)
    self.until_active()
    # In one step.
    self.run_inside("rm", "-r", "/etc/r2cc/tls")
    self.run_inside("r2ccctl", "certs", "issue", "n0", "--dir", "/root/ca", "--install")
    self.assertEqual(self.run_inside("stat", "--format", "%U %a", "/etc/r2cc/tls/node.key").stdout.strip(), "r2ccd 400")
    self.run_inside("systemctl", "restart", "r2ccd")
    self.until_active()
    self.configure(CONFIG)
    self.run_inside("rm", "-r", "/etc/r2cc/tls", "/root/ca")
    self.run_inside("systemctl", "restart", "r2ccd")
    self.until_active()

  def job_report(self) -> dict:
    report, = self.ask("job", "report", "during-upgrade")["jobs"]
    return report

  def check_upgrade(self) -> None:
    self.run_inside("systemd-run", "--unit", "job", "--quiet", "sh", "-c", f"exec {JOB} > /job.log 2>&1")
    # Both ranks, and each sends by both rails: a rail that carries nothing yet is not lost.
    sent = lambda: [int(rail["sent_bytes"]) for job in self.jobs() for rail in job["rails"]]
    self.until(lambda: len(sent()) == 4 and all(sent()))
    self.run_inside("r2ccctl", "fail-nic", "n0/rail1", "--for", "2s")
    # Both ranks have lost it and gone on.
    self.until(lambda: (one := self.job_report())["on_purpose"] == 1 and one["faults"][0].get("masked"))
    before = self.job_report()
    self.run_inside("r2ccctl", "nic", "drain", "n0/rail1")
    release, pid, socket = self.ask("status")["release"], self.show("MainPID"), self.attach_socket()
    self.install("next")
    self.until_active()
    self.assertNotEqual(self.show("MainPID"), pid)
    self.assertEqual((release == NEXT, self.ask("status")["release"]), (False, NEXT))
    self.assertEqual(self.attach_socket(), socket, "jobs that come meanwhile wait in its queue")
    self.until(lambda: len(self.jobs()) == 2)
    nics = {nic["name"]: nic for node in self.ask("nic", "list")["nodes"] for nic in node["nics"]}
    self.assertTrue(nics["rail1"].get("drained") or nics["rail1"].get("state") == "DRAINED", nics)
    self.check_report(before)
    self.assertEqual(self.run_inside("systemctl", "is-active", "job").stdout.strip(), "active", self.job_log())
    self.install("now")
    self.until_active()
    self.assertEqual(self.ask("status")["release"], release)
    self.until(lambda: len(self.jobs()) == 2)
    self.check_report(before)
    self.assertEqual(self.run_inside("systemctl", "is-active", "job").stdout.strip(), "active", self.job_log())
    # As systemd stops all of a unit, also where it may not.
    pids = [path.split("/")[2] for path in self.processes("r2cc-perf")]
    self.run_inside("sh", "-c", f"kill -TERM {' '.join(pids)}")
    self.until(lambda: not self.jobs())
    # It was killed, so a restart follows all the same.
    self.check_report({**before, "restarts_saved": 0})

  def check_report(self, before: dict) -> None:
    """What the job met before is reported as it was, and the daemon has missed nothing."""
    now = self.job_report()
    for what in ("on_purpose", "faults_masked", "faults_not_masked", "longest_stall_ns", "restarts_saved", "processes"):
      self.assertEqual(now[what], before[what], what)
    self.assertEqual(int(now["watched_since_ns"]), 0)
    self.assertGreaterEqual(int(now["sent_bytes"]), int(before["sent_bytes"]))
    self.assertAlmostEqual(int(now["begun_ns"]), int(before["begun_ns"]), delta=1e9)

  def job_log(self) -> str:
    return (self.machine.path / "job.log").read_text(encoding="utf-8", errors="replace")
