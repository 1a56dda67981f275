"""The configuration as it is installed: nothing is set, everything is there, and what is there can be used."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from deploy.config import commented


def uncommented(text: str) -> str:
  """As if somebody took one comment sign from every line."""
  return re.sub(r"^#", "", text, flags=re.MULTILINE)


class CommentedTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.built, cls.proto, cls.r2ccd = [pathlib.Path(path) for path in unittest_main.test_args()]
    cls.text = cls.built.read_text(encoding="utf-8")

  def setUp(self):
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

  def check(self, text: str) -> subprocess.CompletedProcess:
    file = self.folder / "r2ccd.textproto"
    file.write_text(text, encoding="utf-8")
    return subprocess.run([self.r2ccd, "--check_config", "--config", file, "--node", "node0"], capture_output=True, text=True, check=False)

  def test_as_installed_it_sets_nothing_and_is_accepted(self):
    self.assertEqual([line for line in self.text.splitlines() if line and not line.startswith("#")], [])
    answer = self.check(self.text)
    self.assertEqual(answer.returncode, 0, answer.stderr)
    self.assertIn("0 peers", answer.stdout)

  def test_every_field_is_there_by_its_name_and_type(self):
    # protoc knows the fields; a name or an example that is none would be refused.
    whole = "".join(uncommented(self.text).split("\n\n", 1)[1:])
    encoded = subprocess.run(["protoc", f"--proto_path={self.proto.parent}", "--encode=r2cc.v1.DaemonConfig", self.proto.name],
                             input=whole.encode(), capture_output=True, check=False)
    self.assertEqual(encoded.returncode, 0, encoded.stderr)
    decoded = subprocess.run(["protoc", f"--proto_path={self.proto.parent}", "--decode=r2cc.v1.DaemonConfig", self.proto.name],
                             input=encoded.stdout, capture_output=True, check=True).stdout.decode()
    for name in ("node", "peers", "nics", "store", "tls", "grants", "drills", "attach", "limits", "realtime_priority"):
      self.assertRegex(decoded, rf"(?m)^{name}\b")

  def test_no_field_is_left_out(self):
    messages = commented.read(self.proto.read_text(encoding="utf-8"))
    to_see, seen = [commented.ROOT], set()
    while to_see:
      name = to_see.pop()
      seen.add(name)
      for field in messages[name].fields:
        self.assertRegex(self.text, rf"(?m)^# *{field.name}(: | {{$)")
        if field.type in messages:
          to_see.append(field.type)
    self.assertLessEqual({"PeerConfig", "NicConfig", "StoreConfig", "TlsConfig", "GrantConfig", "LimitsConfig"}, seen)

  def test_a_typical_choice_of_lines_is_accepted(self):
    lines = uncommented(self.text).splitlines()
    wanted = [line for line in lines if line.startswith(("node:", "realtime_priority:", "nice:"))]
    self.assertEqual(len(wanted), 3)
    self.assertEqual(self.check("\n".join(wanted)).returncode, 0)
    wrong = self.check(wanted[0] + "\nnoode: 1\n")
    self.assertEqual(wrong.returncode, 1)
    self.assertIn("r2ccd.textproto:2: ", wrong.stderr)

  def test_files_in_the_directory_add_to_it(self):
    (self.folder / "r2ccd.d").mkdir()
    (self.folder / "r2ccd.d/10-peers.textproto").write_text(
        'insecure: true\npeers { node: "n1" address: "h1:7460" }\n', encoding="utf-8")
    (self.folder / "r2ccd.d/20-peers.textproto").write_text('peers { node: "n2" address: "h2:7460" }\n', encoding="utf-8")
    self.assertIn("2 peers", self.check(self.text).stdout)
    (self.folder / "r2ccd.d/30-bad.textproto").write_text("\npeers { node: 5 }\n", encoding="utf-8")
    wrong = self.check(self.text)
    self.assertEqual(wrong.returncode, 1)
    self.assertIn("r2ccd.d/30-bad.textproto:2: ", wrong.stderr)

  def test_a_network_stands_for_this_machines_address(self):
    answer = self.check('insecure: true\nlisten: "127.0.0.1/32:7460"\nnics { name: "rail0" address: "127.0.0.1/32" }\n')
    self.assertEqual(answer.returncode, 0, answer.stderr)
    self.assertIn("1 NICs", answer.stdout)
    wrong = self.check('insecure: true\nnics { name: "rail0" address: "240.0.0.0/4" }\n')
    self.assertEqual(wrong.returncode, 1)
    self.assertIn("r2ccd.textproto:2: NIC rail0: this machine has no address in 240.0.0.0/4; it has ", wrong.stderr)
    self.assertIn("127.0.0.1 (lo)", wrong.stderr)

  def test_no_line_is_too_long_for_a_terminal_that_is_wide(self):
    self.assertLessEqual(max(map(len, self.text.splitlines())), 140)

  def test_a_field_without_an_example_ends_the_build(self):
    with self.assertRaises(KeyError):
      commented.commented("message DaemonConfig {\n  string new_thing = 1;\n}\n")
