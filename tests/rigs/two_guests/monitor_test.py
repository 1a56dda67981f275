import json
import pathlib
import socket
import tempfile
import threading
import unittest

from tests.rigs.two_guests.monitor import Monitor, MonitorError

GREETING = {"QMP": {"version": {}}}


class MonitorTest(unittest.TestCase):

  def monitor(self, *replies: list[dict]) -> Monitor:
    """To a QEMU that gives one list of lines for each command, and closes."""
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    path = pathlib.Path(folder.name) / "qmp"
    self.asked = []
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen()

    def serve():
      connection, _ = server.accept()
      with server, connection, connection.makefile("rw", encoding="utf-8") as stream:
        def send(lines):
          stream.write("".join(json.dumps(line) + "\n" for line in lines))
          stream.flush()
        send([GREETING])
        for lines in ([{"return": {}}], *replies):
          self.asked.append(json.loads(stream.readline()))
          send(lines)
    thread = threading.Thread(target=serve)
    thread.start()
    self.addCleanup(thread.join)
    monitor = Monitor(path)
    self.addCleanup(monitor.close)
    return monitor

  def test_a_command_is_done_when_it_is_answered(self):
    monitor = self.monitor([{"event": "STOP"}, {"return": {}}], [{"return": {}}])
    monitor.ask("stop")
    monitor.ask("set_link", name="card1", up=False)
    self.assertEqual(self.asked[0]["execute"], "qmp_capabilities")
    self.assertEqual(self.asked[1:], [{"execute": "stop", "arguments": {}},
                                      {"execute": "set_link", "arguments": {"name": "card1", "up": False}}])

  def test_a_refusal_has_qemus_message(self):
    with self.assertRaisesRegex(MonitorError, "set_link: Device 'card9' not found"):
      self.monitor([{"error": {"class": "DeviceNotFound", "desc": "Device 'card9' not found"}}]).ask("set_link", name="card9", up=False)

  def test_a_qemu_that_is_gone_is_reported(self):
    monitor = self.monitor()
    with self.assertRaises(MonitorError):
      monitor.ask("stop")
    with self.assertRaisesRegex(MonitorError, "/nowhere/qmp"):
      Monitor(pathlib.Path("/nowhere/qmp"))
