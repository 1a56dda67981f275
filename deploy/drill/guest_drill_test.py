"""What the drill hands to a guest and what it makes of what comes back. Whole: //tests/e2e:drill_verbs_test."""

import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

from rich.console import Console

from deploy.drill import arguments, guest_drill
from testing.guest import guest
from testing.lab.lab import LabError

PASSED = {"pass": True, "reason": "", "iterations": 7}


class FakeGuest:
  """A guest that says something and leaves files."""

  def __init__(self, folder: pathlib.Path, left: dict[str, str], kernel_log: str = ""):
    self._folder, self._left, self._kernel_log = folder, left, kernel_log

  def __call__(self, rails, wiring, show):
    self.rails, self.wiring, self._show = rails, wiring, show
    return self

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass

  def run(self, argv, environment, limit_s):
    self.argv, self.environment, self.limit_s = argv, environment, limit_s
    self._show("rails are up")
    self._show("| [1] all went well")
    for name, text in self._left.items():
      (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
      (self._folder / name).write_text(text, encoding="utf-8")
    return guest.Result(status=0, output="much\nits last word\n", kernel_log=self._kernel_log, folder=self._folder)


class GuestDrillTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    can = mock.patch.object(guest, "missing_feature", return_value=None)
    can.start()
    self.addCleanup(can.stop)
    self.console = Console(file=io.StringIO(), width=100)

  def drill(self, left: dict[str, str], *flags: str, keep: pathlib.Path | None = None, kernel_log: str = ""):
    self.guest = FakeGuest(self.folder / "out", left, kernel_log)
    options = arguments.parse_arguments(["--rig", "verbs", *flags], lambda: "")
    return guest_drill.run(options, options.plugin, keep, self.console, make=self.guest)

  def test_the_guest_runs_the_same_drill_and_its_verdict_counts(self):
    result = self.drill({"summary.json": json.dumps(PASSED)}, "--quick", "--json", "--plugin", "/some/plugin.so")
    self.assertEqual(result, PASSED)
    self.assertEqual(self.guest.argv[1:], ["-m", "deploy.drill.main", "--rig", "verbs", "--quick", "--plugin", "/some/plugin.so"])
    self.assertEqual((self.guest.rails, self.guest.wiring, self.guest.environment["COLUMNS"]), (guest_drill.RAILS, "bridge", "100"))
    shown = self.console.file.getvalue().splitlines()
    self.assertEqual(shown, ["guest: rails are up", "[1] all went well"])

  def test_a_damaged_kernel_is_a_failure(self):
    result = self.drill({"summary.json": json.dumps(PASSED)}, kernel_log="WARNING: CPU: 0 PID: 1 at lib/refcount.c:28\n")
    self.assertFalse(result["pass"])
    self.assertIn("kernel complained: WARNING: CPU: 0", result["reason"])
    self.assertIn("FAIL", self.console.file.getvalue())

  def test_a_guest_without_a_verdict_is_none(self):
    with self.assertRaisesRegex(LabError, "ended with 0 and said: its last word"):
      self.drill({})

  def test_logs_are_kept_where_they_are_wanted(self):
    kept = self.folder / "kept"
    self.drill({"summary.json": json.dumps(PASSED), "logs/rank0.err": "words"}, "--keep-logs", str(kept), keep=kept)
    self.assertEqual((kept / "rank0.err").read_text(encoding="utf-8"), "words")
    self.assertEqual(self.guest.argv[-2:], ["--keep-logs", "/run/guest/out/logs"])

  def test_a_missing_need_of_a_guest_is_one_line(self):
    missing = mock.patch.object(guest, "missing_feature", return_value="there is no QEMU")
    with missing, self.assertRaisesRegex(LabError, "here: there is no QEMU"):
      self.drill({})

  def test_a_guest_that_does_not_come_up_is_reported(self):
    fails = mock.Mock(side_effect=guest.GuestError("it still boots"))
    with mock.patch.object(FakeGuest, "run", fails), self.assertRaisesRegex(LabError, "it still boots"):
      self.drill({})

  def test_the_summary_of_the_guest_is_read(self):
    self.assertIsNone(guest_drill.out_folder({}))
    out = guest_drill.out_folder({"R2CC_GUEST_OUT": str(self.folder)})
    guest_drill.leave(out, PASSED)
    self.assertEqual(json.loads((self.folder / "summary.json").read_text(encoding="utf-8")), PASSED)
