import os
import pathlib
import tempfile
import unittest
from unittest import mock

from tests.gpu import mps, tools

# Serves until it is told to quit, as the real one does with -f.
SERVES = """#!/bin/sh
if [ "$1" = -f ]; then
  touch "$CUDA_MPS_PIPE_DIRECTORY/control"
  while [ ! -e "$CUDA_MPS_PIPE_DIRECTORY/quit" ]; do sleep 0.02; done
  echo ended >> "$CUDA_MPS_LOG_DIRECTORY/control.log"
  exit 0
fi
read command
case $command in
  quit*) touch "$CUDA_MPS_PIPE_DIRECTORY/quit" ;;
  *) test -e "$CUDA_MPS_PIPE_DIRECTORY/control" ;;
esac
"""


class MpsTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    patch = mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"})
    patch.start()
    self.addCleanup(patch.stop)

  def program(self, text: str) -> None:
    file = self.folder / mps.PROGRAM
    file.write_text(text, encoding="ascii")
    file.chmod(0o755)

  def test_serves_for_as_long_as_it_is_wanted(self):
    self.program(SERVES)
    logs = self.folder / "logs"
    with mps.service(logs) as environment:
      folder = pathlib.Path(environment["CUDA_MPS_PIPE_DIRECTORY"])
      self.assertTrue((folder / "control").exists())
      self.assertFalse((logs / "control.log").exists())
    self.assertEqual((logs / "control.log").read_text(), "ended\n")
    self.assertFalse(folder.exists())

  def test_a_service_that_does_not_start_is_named(self):
    self.program("#!/bin/sh\necho 'no device' >&2\nexit 1\n")
    with self.assertRaisesRegex(tools.Missing, "does not serve here: no device; leave --mps out"):
      with mps.service(self.folder / "logs"):
        self.fail("there is no service")

  def test_what_is_not_there_is_named(self):
    with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
      with self.assertRaisesRegex(tools.Missing, "is not in PATH"):
        with mps.service(self.folder / "logs"):
          self.fail("there is no service")
