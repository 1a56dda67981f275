import pathlib
import subprocess
import tempfile
import unittest

from tests.gpu import tools


class ToolsTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)

  def program(self, path: str) -> None:
    file = self.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\necho \"$LD_LIBRARY_PATH $*\"\n", encoding="ascii")
    file.chmod(0o755)

  def test_unpacked_programs_find_their_libraries(self):
    self.program("sbin/tc")
    self.program("bin/ip")
    library = self.folder / "lib/x86_64-linux-gnu/libmnl.so.0"
    library.parent.mkdir(parents=True)
    library.touch()
    target = self.folder / "wrappers"
    target.mkdir()
    tools.wrapped_iproute2(self.folder, target)
    output = subprocess.run([target / "ip", "-V", "a b"], capture_output=True, text=True, check=True).stdout
    self.assertEqual(output, f"{library.parent} -V a b\n")
    self.assertFalse((target / "bridge").exists())

  def test_a_missing_program_is_named(self):
    self.program("bin/ip")
    with self.assertRaisesRegex(tools.Missing, "there is no tc in its bin/"):
      tools.wrapped_iproute2(self.folder, self.folder)

  def test_processors_go_by_core(self):
    for processor in range(6):
      topology = self.folder / f"cpu{processor}" / "topology"
      topology.mkdir(parents=True)
      (topology / "thread_siblings_list").write_text(f"{processor % 3},{processor % 3 + 3}\n", encoding="ascii")
    self.assertEqual(tools.processor_cores({5, 0, 2, 3, 4}, self.folder), [(0, 3), (2, 5), (4,)])
    self.assertEqual(tools.processor_cores({1, 0}, self.folder / "nothing"), [(0,), (1,)])

  def test_a_python_without_pytorch_is_named(self):
    with self.assertRaisesRegex(tools.Missing, "has no working PyTorch .*--python"):
      tools.probe_torch("/bin/false", "")
    with self.assertRaisesRegex(tools.Missing, "cannot be asked"):
      tools.probe_torch("/nowhere/python3", "")
