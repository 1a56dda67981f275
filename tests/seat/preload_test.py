"""libr2cc-nccl.so in front of a stub of NCCL, by LD_PRELOAD and LD_AUDIT. Arguments: the specimens, and the libraries."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

from bazel import unittest_main

OFF = "phase 0: 0 of 40 redirected\nphase 1: 0 of 40 redirected\nphase 2: 0 of 40 redirected\nwrong 0, left 0\n"


class PreloadTest(unittest.TestCase):

  def setUp(self):
    self.files = {pathlib.Path(path).name: pathlib.Path(path).absolute() for path in unittest_main.test_args()}
    if b"__asan_init" in self.files["libr2cc-nccl.so"].read_bytes() or b"__tsan_init" in self.files["libr2cc-nccl.so"].read_bytes():
      self.skipTest("a sanitizer wants to be the first library of a process")
    # By the names that the loader looks for, in one folder.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    for name, path in self.files.items():
      shutil.copy(path, self.folder / name.replace("libstub_nccl.so", "libnccl.so.2").replace("libstub_cuda.so", "libcuda.so.1"))

  def run_specimen(self, without: str | None = None, specimen: str = "specimen", **environment: str) -> tuple[str, str]:
    if without is not None:
      (self.folder / without).unlink()
    output = subprocess.run([self.folder / specimen, self.folder / "libnccl-stub-rails.so"], capture_output=True, text=True, timeout=60,
                            check=True, env={"LD_LIBRARY_PATH": str(self.folder), "PATH": os.environ["PATH"], **environment})
    return output.stdout, output.stderr

  def preload(self) -> dict[str, str]:
    return {"LD_PRELOAD": str(self.folder / "libr2cc-nccl.so")}

  def test_off_by_default(self):
    self.assertEqual(self.run_specimen(), (OFF, ""))
    self.assertEqual(self.run_specimen(**self.preload()), (OFF, ""))
    self.assertEqual(self.run_specimen(R2CC_SEAT="0", **self.preload()), (OFF, ""))

  def test_there_and_back(self):
    self.check_there_and_back(*self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="4", **self.preload()))

  def test_an_audit_library_is_in_front_of_nccl_that_is_opened(self):
    opens = {"specimen": "specimen_opens_nccl", "R2CC_SEAT_EVERY": "4"}
    audit = {"LD_AUDIT": str(self.folder / "libr2cc-nccl.so")}
    self.check_there_and_back(*self.run_specimen(R2CC_SEAT="1", **opens, **audit))
    self.check_there_and_back(*self.run_specimen(R2CC_SEAT="1", **opens, **audit, **self.preload()))
    self.assertEqual(self.run_specimen(R2CC_SEAT="0", **opens, **audit), (OFF, ""))
    # Why LD_AUDIT is needed.
    self.assertEqual(self.run_specimen(R2CC_SEAT="1", **opens, **self.preload()), (OFF, ""))

  def check_there_and_back(self, out: str, err: str, way: str = "NCCL's tree in another order of nodes", number: int = 1, kept: int = 50,
                           permille: int = 700) -> None:
    reports = [line for line in out.splitlines() if line.startswith("report")]
    self.assertEqual(len(reports), 2, out)
    self.assertRegex(reports[0], rf"^report: communicator \d, way {number}, call \d+, \d+ MiB, {permille}$")
    self.assertRegex(reports[1], r"^report: communicator \d, way 0, call \d+, 0 MiB, 1000$")
    out = "".join(line + "\n" for line in out.splitlines() if line not in reports)
    phases = [int(line.split()[2]) for line in out.splitlines()[:3]]
    self.assertEqual(phases[0], 0, out)
    self.assertTrue(16 <= phases[1] <= 28, out)  # found twice, made, agreed on
    self.assertTrue(8 <= phases[2] <= 20, out)
    self.assertEqual(out.splitlines()[3], "wrong 0, left 0")
    lines = err.splitlines()
    self.assertEqual(len(lines), 2, err)
    self.assertRegex(lines[0], rf"^R2CC: AllReduce of communicator \d uses {way} since call \d+, from "
                     rf"\d+ MiB on: that of rank 1 has {kept} % of its rails; expected {permille / 1000:.2f} of the usual time for "
                     r"large vectors$")
    self.assertRegex(lines[1], r"^R2CC: AllReduce of communicator \d is NCCL's own again since call \d+")

  def test_collnet_there_and_back(self):
    out, err = self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="4", STUB_COLLNET="1", SPECIMEN_KEPT="750", **self.preload())
    self.check_there_and_back(out, err, "CollNet", 2, 75, 896)

  def test_a_communicator_that_the_program_has_split_off(self):
    self.check_there_and_back(*self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="4", SPECIMEN_SPLITS="1", **self.preload()))

  def test_a_rank_without_the_library_leaves_the_others_nccls_own(self):
    for more in ({}, {"SPECIMEN_SPLITS": "1"}):
      out, err = self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="4", SPECIMEN_BARE="2", **more, **self.preload())
      self.assertEqual(out, OFF)
      self.assertRegex(err, r"^R2CC: AllReduce of communicator \d stays NCCL's own: rank 2 has no libr2cc-nccl\.so with R2CC_SEAT=1\n$")

  def test_the_default_interval_is_longer_than_this_program(self):
    self.assertEqual(self.run_specimen(R2CC_SEAT="1", **self.preload()), (OFF, ""))

  def test_a_setting_that_is_refused_is_one_line(self):
    out, err = self.run_specimen(R2CC_SEAT="yes", **self.preload())
    self.assertEqual(out, OFF)
    self.assertEqual(err, "R2CC: no seats in NCCL's tree: R2CC_SEAT=yes: want 0 or 1, the same on all ranks\n")

  def test_an_nccl_that_was_not_tried_is_one_line(self):
    for version, word in (("21704", "NCCL 2.17 is older than 2.18"), ("23300", "NCCL 2.33 is newer than what was tried")):
      out, err = self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="4", STUB_NCCL_VERSION=version, **self.preload())
      self.assertEqual((out, err), (OFF, f"R2CC: R2CC_SEAT=1 has no effect: {word}\n"))

  def test_ids_that_each_process_makes_stay_alike(self):
    out, err = self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="4", NCCL_COMM_ID="127.0.0.1:4711", **self.preload())
    self.assertEqual(out, OFF)
    self.assertEqual(err, "R2CC: R2CC_SEAT=1 has no effect: with NCCL_COMM_ID no process decides for all ranks; unset it\n")

  def test_an_agreement_that_waits_for_a_rank_names_the_call(self):
    out, err = self.run_specimen(R2CC_SEAT="1", R2CC_SEAT_EVERY="40", R2CC_DEADLINE_MS="2000", STUB_EVENTS_LATE="1", **self.preload())
    self.assertTrue(out.endswith("wrong 0, left 0\n"), out)
    for rank in range(4):
      self.assertRegex(err, rf"communicator \d, rank {rank}: at call 80 the agreement of call 40 has not ended\. ")
      self.assertEqual(len(re.findall(rf"rank {rank}: at call", err)), 2, err)  # call 80 and call 120

  def test_ranks_that_differ_in_number_hang_with_a_line_that_names_the_call(self):
    # The rank that has made one fewer has no third agreement.
    calls = {"SPECIMEN_SKIPS": "49", "R2CC_SEAT": "1", "R2CC_SEAT_EVERY": "40", "R2CC_DEADLINE_MS": "2000"}
    with subprocess.Popen([self.folder / "specimen", self.folder / "libnccl-stub-rails.so"], stderr=subprocess.PIPE, text=True,
                          stdout=subprocess.DEVNULL, env={"LD_LIBRARY_PATH": str(self.folder), **calls, **self.preload()}) as job:
      limit = threading.Timer(60, job.kill)  # a job without the lines would be waited for without end
      limit.start()
      self.addCleanup(limit.cancel)
      output = sorted((job.stderr.readline() for _ in range(3)), key=lambda line: line.partition("rank")[2])
      self.assertIsNone(job.poll())
      job.kill()
      self.assertEqual(job.stderr.read(), "")
    for rank, line in zip((0, 1, 3), output):
      self.assertRegex(line, rf"communicator \d, rank {rank}: at call 120 the agreement of call 80 has not ended\. The job hangs until "
                       "all ranks take part: one has stopped, or has made fewer AllReduces$")

  def test_without_a_driver_there_is_no_seat(self):
    out, err = self.run_specimen(without="libcuda.so.1", R2CC_SEAT="1", R2CC_SEAT_EVERY="4", **self.preload())
    self.assertEqual(out, OFF)
    self.assertEqual(err, "R2CC: R2CC_SEAT=1 has no effect: there is no CUDA driver\n")
