"""What people and programs outside see of a node: a program for each event, suggested NICs, which part a NIC is."""

import json
import pathlib

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase


class Outside(NamespaceCase):
  """Two nodes of two rails."""

  def setUp(self) -> None:
    super().setUp()
    self.lab = self.enterContext(NamespaceLab(nodes=2, rails=2, rate=None))
    self.processes = self.enterContext(Processes(self.folder))
    self.cluster = Cluster(self.lab, built_binaries(), self.folder, self.processes)
    self.cluster.start_daemons()

  def test_a_program_runs_for_each_event(self):
    received = self.folder / "received"
    program = self.folder / "on-event"
    program.write_text(f"#!/bin/sh\n/bin/cat >> {received}\n", encoding="utf-8")
    program.chmod(0o755)
    argv = [str(self.cluster.binaries.ctl), "events", "--follow", "--last", "1", "--kind", "nic-state", "--run", str(program), "--run_dir",
            str(self.cluster.run_dir(0))]
    hook = self.processes.start("hook", argv)
    events = lambda: [json.loads(line) for line in received.read_text(encoding="utf-8").splitlines()] if received.exists() else []
    self.assertTrue(wait_until(lambda: len(events()) == 1, PATIENCE_S, 0.1), hook.errors())
    became = lambda state: [event for event in events()
                            if (event.get("to_state"), event["node"], event["nic"]) == (state, "n0", "rail1")]
    failed = lambda: became("FAILED")
    self.lab.cut(RailId(0, 1))
    self.assertTrue(wait_until(failed, PATIENCE_S, 0.1), (events(), hook.errors()))
    # A restart of the daemon loses none, and none comes twice.
    self.assertEqual(self.cluster.daemon(0).stop(), 0)
    self.cluster.start_daemon(0)
    self.cluster.wait_ready(0)
    self.lab.heal(RailId(0, 1))
    is_back = lambda: any(int(event["time_ns"]) > int(failed()[0]["time_ns"]) for event in became("HEALTHY"))
    self.assertTrue(wait_until(is_back, PATIENCE_S, 0.1), (events(), hook.errors()))
    numbers = [event["sequence"] for event in events()]
    self.assertEqual(len(numbers), len(set(numbers)))

  def test_a_program_that_hangs_holds_up_no_daemon_and_the_next_event_comes(self):
    received, hung = self.folder / "received", self.folder / "hung"
    program = self.folder / "on-event"
    # Its first run closes its output, too: nothing of it ends.
    program.write_text(f"#!/bin/sh\nif [ ! -e {hung} ]; then echo $$ > {hung}; exec >&- 2>&-; exec /bin/sleep 1000; fi\n"
                       f"/bin/cat >> {received}\n", encoding="utf-8")
    program.chmod(0o755)
    argv = [str(self.cluster.binaries.ctl), "events", "--follow", "--last", "1", "--kind", "nic-state", "--run", str(program), "--run_dir",
            str(self.cluster.run_dir(0))]
    hook = self.processes.start("hook", argv)
    self.assertTrue(wait_until(hung.exists, PATIENCE_S, 0.1), hook.errors())
    self.lab.cut(RailId(0, 1))
    self.assertIn("ok: r2ccd of node n0", self.cluster.ctl(0, "health"))
    came = lambda: received.exists() and '"to_state":"FAILED"' in received.read_text(encoding="utf-8")
    self.assertTrue(wait_until(came, 30 + PATIENCE_S, 0.1), hook.errors())
    self.assertFalse(pathlib.Path(f"/proc/{hung.read_text(encoding='ascii').strip()}").exists(), "it was ended")

  def test_nics_are_suggested_with_the_names_of_the_other_node(self):
    argv = self.lab.command(0, [str(self.cluster.binaries.ctl), "config", "suggest", "--run_dir", str(self.cluster.run_dir(0))])
    suggest = self.processes.start("suggest", argv)
    self.assertEqual(suggest.wait(PATIENCE_S), 0)
    lines = suggest.output().splitlines()
    for rail in range(2):
      line, = [line for line in lines if line.startswith(f'nics {{ name: "rail{rail}" interface: "rail{rail}" }}')]
      self.assertIn(f"as n1/rail{rail}", line)

  def test_unknown_parts_have_a_reason(self):
    text = self.cluster.ctl(0, "nic", "list", "n1", "-o", "wide")
    self.assertIn("n1/rail0: no driver: no device is behind this interface", text)
    self.assertIn("n1/rail1: no switch port: ", text)
