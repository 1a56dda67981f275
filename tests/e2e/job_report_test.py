"""What is left when a job has met a fault: its report, and a bundle for whoever looks at the node from afar."""

import json
import os
import subprocess
import tarfile

from testing.lab.lab import RailId
from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase


class JobReport(ClusterCase):

  def report(self, *arguments: str) -> dict:
    """Of the job, as the daemon of node 3 gathers it."""
    jobs = self.cluster.ctl_json(3, "job", "report", *arguments)["jobs"]
    self.assertEqual(len(jobs), 1, jobs)
    return jobs[0]

  def test_a_fault_that_was_masked(self):
    self.assertEqual(self.report()["faults_masked"], 0)
    self.lab.cut(RailId(3, 0))
    self.assertTrue(wait_until(lambda: self.report()["faults_masked"] > 0, PATIENCE_S, 0.2))
    self.expect_iterations(3)
    self.lab.heal(RailId(3, 0))
    self.expect_iterations(3)
    self.expect_right_end()
    self.assertTrue(wait_until(lambda: self.report()["attached"] == 0, PATIENCE_S, 0.1))

    report = self.report("--restart", "10m", "--checkpoint", "1h")
    self.assertEqual((report["node"], report["processes"], report["attached"], report["gave_up"]), ("n3", 4, 0, []))
    self.assertEqual(report["faults_not_masked"], 0)
    self.assertEqual({fault["nic"] for fault in report["faults"]}, {"rail0"})
    self.expect_sums(report)
    begun = int(report["begun_ns"])
    self.assertTrue(all(fault["masked"] and int(fault["time_ns"]) > begun for fault in report["faults"]), report["faults"])
    stalls = [int(fault["stall_ns"]) for fault in report["faults"]]
    self.assertTrue(max(stalls) <= int(report["stall_ns"]) <= sum(stalls), report)
    self.assertGreater(int(report["sent_bytes"]), 0)
    self.assertGreater(int(report["ended_ns"]), int(report["begun_ns"]))
    # One restart of 10 min with half an hour done again, of four processes.
    self.assertEqual(report["restarts_saved"], 1)
    self.assertAlmostEqual(report["restart_cost"]["value"], 4 * 40 / 60)
    # Where the daemon's verdict comes before anything waited there is neither a stall nor anything to send again.
    lost = int(report["stall_ns"]) > 0 or int(report["replayed_bytes"]) > 0 or len(report["reduced"]) > 0
    self.assertEqual(report["goodput_lost"]["value"] > 0, lost, report)
    self.assertIn("about", report["goodput_lost"]["from"])
    assumed = self.report()["restart_cost"]
    self.assertIn("assumed: set --restart and --checkpoint", assumed["from"])
    self.assertIn(f"{report['faults_masked']} masked, 0 not", self.cluster.ctl(3, "job", "report"))
    self.expect_named()

  def expect_sums(self, report: dict) -> None:
    """The whole job, as its four nodes' daemons tell of their own processes, whichever of them is asked."""
    rows = {row["node"]: row for row in report["nodes"]}
    self.assertEqual(set(rows), {"n0", "n1", "n2", "n3"})
    for what in ("sent_bytes", "received_bytes", "replayed_bytes", "processes"):
      self.assertEqual(int(report[what]), sum(int(row[what]) for row in rows.values()), what)
    # What one sends another receives; of what was sent twice, once at least.
    self.assertGreater(int(report["received_bytes"]), 0)
    self.assertLessEqual(abs(int(report["sent_bytes"]) - int(report["received_bytes"])), int(report["replayed_bytes"]))
    # The node that lost its cable and the neighbours that sent there met one fault.
    cut = report["faults"][0]
    self.assertIn("n3", cut["nodes"])
    self.assertGreaterEqual(len(cut["nodes"]), 2)
    for node in range(3):
      other = self.cluster.ctl_json(node, "job", "report")
      self.assertEqual(other["missing"], [])
      for what in ("processes", "sent_bytes", "received_bytes", "replayed_bytes", "faults_masked", "stall_ns", "nodes"):
        self.assertEqual(other["jobs"][0][what], report[what], f"{what} as n{node} has it")

  def expect_named(self) -> None:
    """A node whose daemon is gone."""
    self.cluster.kill_daemon(1)
    reports = self.cluster.ctl_json(3, "job", "report")
    self.assertEqual([one["node"] for one in reports["missing"]], ["n1"])
    self.assertIn("cannot be reached", reports["missing"][0]["why"])
    self.assertEqual((reports["jobs"][0]["processes"], {row["node"] for row in reports["jobs"][0]["nodes"]}), (3, {"n0", "n2", "n3"}))
    self.assertIn("no answer      n1: ", self.cluster.ctl(3, "job", "report"))

  def test_a_bundle_has_all_of_it_and_no_key(self):
    self.lab.cut(RailId(3, 0))
    wait_until(lambda: self.report()["faults_masked"] > 0, PATIENCE_S, 0.2)
    self.cluster.ctl(3, "nic", "drain", "n3/rail1")
    out = self.folder / "bundle.tar.gz"
    command = [str(self.cluster.binaries.ctl), "--run_dir", str(self.cluster.run_dir(3)), "support-bundle", "--state_dir",
               str(self.cluster.run_dir(3) / "kept"), "--out", str(out)]
    done = subprocess.run(self.lab.command(3, command), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEqual(os.stat(out).st_mode & 0o777, 0o600)
    with tarfile.open(out) as archive:
      members = archive.getmembers()
      self.assertEqual({member.mode for member in members}, {0o600})
      texts = {member.name.partition("/")[2]: archive.extractfile(member).read().decode("utf-8", "replace") for member in members}
    self.assertLess(sum(len(text) for text in texts.values()), 20 << 20)
    for name in ("CONTENTS.txt", "status.txt", "status.json", "nics.txt", "nics.json", "jobs.json", "jobs-ended.json", "page.json",
                 "page-why.json", "config.textproto", "events.jsonl", "doctor.txt", "audit.log", "links.txt", "addresses.txt", "routes.txt",
                 "rules.txt", "system.txt", "why-1.txt"):
      self.assertTrue(texts.get(name), f"{name} in {sorted(texts)}\n{texts['CONTENTS.txt']}")
      self.assertIn(name, done.stdout if name != "CONTENTS.txt" else "CONTENTS.txt", "what is in it is listed")
    self.assertTrue(any(json.loads(line)["kind"] == "failover" for line in texts["events.jsonl"].splitlines()))
    self.assertIn("drain", texts["audit.log"])
    self.assertIn("FAILED", texts["nics.txt"])
    self.assertIn("FAIL", texts["doctor.txt"])
    self.assertNotIn("PRIVATE KEY", "".join(texts.values()))
    again = subprocess.run(self.lab.command(3, command), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    self.assertEqual(again.returncode, 1)
    self.assertIn("File exists", again.stderr)
    self.assertIn("--out", again.stderr)
    self.expect_right_end()
