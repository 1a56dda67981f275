"""The subnet manager's word as two daemons on two hosts of a simulated fabric hear it."""

import json
import pathlib
import socket
import subprocess
import tempfile
import unittest

from testing.lab.binaries import built_file
from testing.lab.processes import Processes, wait_until
from tests.ibsim import simulated_fabric
from tests.ibsim.simulated_fabric import PATIENCE_S, SimulatedFabric

NODES = {"n2": "H2", "n3": "H3"}


class FabricEvents(unittest.TestCase):

  def setUp(self) -> None:
    reason = simulated_fabric.missing_feature()
    if reason is not None:
      self.skipTest(f"needs ibsim: {reason}")
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    folder = tempfile.TemporaryDirectory(prefix="r2cc-ibsim-", dir="/tmp")
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.processes = Processes(self.folder)
    self.addCleanup(self.processes.end_all)
    self.fabric = SimulatedFabric(self.folder, self.processes)
    self.addCleanup(self.fabric.close)
    self.daemons = {}
    for node in NODES:
      self._start_daemon(node)
    # Before it knows the other node a daemon has no name for that node's ports.
    ready = lambda: all(self._receives(node) and self._knows_peers(node) for node in NODES)
    self.assertTrue(wait_until(ready, PATIENCE_S), self._texts())

  def _start_daemon(self, node: str) -> None:
    nics = f'nics {{ name: "ib0" port_guid: "{self.fabric.port_guid(NODES[node])}" }}\n'
    own = f"127.0.0.1:{self._peer_port(node)}"
    peers = "".join(f'peers {{ node: "{peer}" address: "127.0.0.1:{self._peer_port(peer)}" }}\n' for peer in NODES)
    config = self.folder / f"{node}.textproto"
    config.write_text(f'node: "{node}"\nlisten: "{own}"\ninsecure: true\n{peers}{nics}', encoding="ascii")
    self.daemons[node] = self.fabric.start_listener(
        node, NODES[node], [str(built_file("daemon/r2ccd")), "--config", str(config), "--run_dir", str(self.folder / node), "--state_dir",
                            str(self.folder / f"{node}-kept")])

  def _peer_port(self, node: str) -> int:
    if not hasattr(self, "ports"):
      sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in NODES}
      self.ports = {name: listening.getsockname()[1] for name, listening in sockets.items()}
      for listening in sockets.values():
        listening.close()
    return self.ports[node]

  def _ask(self, node: str, *words: str) -> str:
    return subprocess.run([built_file("client/r2ccctl"), "--run_dir", self.folder / node, "-o", "json", *words], capture_output=True,
                          text=True, check=False, timeout=PATIENCE_S).stdout

  def _fabric_events(self, node: str, about: str) -> list[str]:
    """What `node` tells of the fabric about NODE/NIC; "": about nobody's port."""
    events = [json.loads(line) for line in self._ask(node, "events").splitlines()]
    return [event["message"] for event in events
            if event["kind"] == "fabric" and (f'{event["node"]}/{event["nic"]}' if event.get("nic") else "") == about]

  def _receives(self, node: str) -> bool:
    return any("reports arrive at this port" in message for message in self._fabric_events(node, f"{node}/ib0"))

  def _knows_peers(self, node: str) -> bool:
    answer = self._ask(node, "plan", "show")
    return bool(answer) and {nic["node"] for nic in json.loads(answer)["nics"]} == set(NODES)

  def _texts(self) -> str:
    return "\n".join(f"{node}: {daemon.errors()}" for node, daemon in self.daemons.items())

  def _await(self, node: str, about: str, words: str) -> None:
    self.assertTrue(wait_until(lambda: any(words in message for message in self._fabric_events(node, about)), PATIENCE_S, every_s=0.2),
                    f"{node} was not told '{words}' of '{about}'\n{self._texts()}")

  def test_a_link_that_is_unlinked_and_linked_again(self):
    self.fabric.send_command('Unlink "H3"[1]')
    # Whose port left the fabric, and that a switch saw a link go.
    self._await("n2", "n3/ib0", f"port out of service (trap 65, port GUID {self.fabric.port_guid('H3')})")
    self._await("n2", "", "link state changed (trap 128")
    # The first message is that the reports arrive; that its capabilities changed (trap 144) may come as its listener starts.
    others = [message for message in self._fabric_events("n2", "n2/ib0")[1:] if "(trap 144, " not in message]
    self.assertEqual(others, [], "the other port is well")
    self.fabric.send_command('Link "H3"[1] "SW1"[3]')
    self._await("n2", "n3/ib0", "port in service (trap 64")
    # The daemon behind the cable hears of itself when it is back.
    self._await("n3", "n3/ib0", "port in service (trap 64")
    for daemon in self.daemons.values():
      self.assertEqual(daemon.stop(), 0, daemon.errors())
