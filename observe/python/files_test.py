"""Files: whole or not there, and every gap told."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from observe.python import stand_in
from r2cc import observe

SMALL = observe.Policy(host_mib=1 / 16, segment_mib=1 / 256)


def verified(folder):
  return list(observe.verify(folder))


setUpModule = stand_in.skip_if_sanitized


class FilesTest(unittest.TestCase):

  def setUp(self):
    temporary = tempfile.TemporaryDirectory()
    self.addCleanup(temporary.cleanup)
    self.folder = pathlib.Path(temporary.name) / "run"
    self.run_name = f"files-{os.getpid()}"

  def write(self, steps=40, policy=SMALL, points=("a", "a:stats", "a:hash")):
    model = stand_in.Module(a=stand_in.scaled(1))
    ids = stand_in.Tensor([0], dtype="int64")
    with observe.attach(model, points, run=self.run_name, policy=policy, files=str(self.folder), tags={"request": ids}) as taps:
      for number in range(steps):
        ids.storage[0] = number
        model(stand_in.Tensor([number] * 20, (4, 5)))
        if number == steps // 2:
          taps.flush()
      return taps.counters()

  def manifest(self):
    return self.folder / f"{self.run_name}-rank0.manifest"

  def segments(self):
    return sorted(self.folder.glob("*.safetensors"))

  def test_reads_back_the_written_values(self):
    self.write()
    items = list(observe.read(self.folder))
    self.assertEqual([item.number for item in items], list(range(40)))
    for item in items:
      self.assertEqual(item["a"].tolist(), [[item.number] * 5] * 4)
      self.assertEqual(item.tags["request"].tolist(), [item.number])
      self.assertEqual(item["a:stats"].numbers()[0].mean, item.number)
    self.assertEqual(verified(self.folder), [f"{self.run_name} rank 0: 40 steps, 40 records whole, 0 lost and counted, 0 not wanted"])
    self.assertGreaterEqual(len(self.segments()), 2)
    self.assertEqual(self.manifest().stat().st_mode & 0o777, 0o600)
    self.assertEqual([path.name for path in self.folder.iterdir() if path.name.endswith(".part")], [])

  def test_a_segment_is_a_file_of_safetensors(self):
    self.write(3)
    data = self.segments()[0].read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + length])
    self.assertEqual((8 + length) % 8, 0)
    self.assertEqual(head["0/a"]["dtype"], "F32")
    self.assertEqual(head["0/a"]["shape"], [4, 5])
    begin, end = head["1/a"]["data_offsets"]
    self.assertEqual(data[8 + length + begin:8 + length + end], struct.pack("<20f", *[1] * 20))
    offsets = sorted(entry["data_offsets"] for name, entry in head.items() if name != "__metadata__")
    self.assertEqual([begin for begin, _ in offsets], [0] + [end for _, end in offsets[:-1]], "without holes")

  def test_gaps_are_in_the_manifest_and_in_what_is_read(self):
    self.write(20, observe.Policy(host_mib=1 / 16, every=3))
    items = list(observe.read(self.folder))
    self.assertEqual([item.number for item in items if isinstance(item, observe.Step)], [0, 3, 6, 9, 12, 15, 18])
    self.assertEqual([(item.first, item.unwanted, item.lost) for item in items if isinstance(item, observe.Gap)],
                     [(number, 2, 0) for number in range(1, 18, 3)] + [(19, 1, 0)])
    self.assertEqual(verified(self.folder), [f"{self.run_name} rank 0: 20 steps, 7 records whole, 0 lost and counted, 13 not wanted"])

  def test_one_line_for_each_file_that_is_not_as_it_was(self):
    self.write()
    segment, manifest = self.segments()[1], self.manifest()
    data, text = segment.read_bytes(), manifest.read_bytes()
    lines = text.splitlines(keepends=True)

    def refused(of_segment=data, of_manifest=text):
      segment.write_bytes(of_segment)
      manifest.write_bytes(of_manifest)
      with self.assertRaises(observe.Error) as raised:
        verified(self.folder)
      segment.write_bytes(data)
      manifest.write_bytes(text)
      self.assertNotIn("\n", str(raised.exception))
      return str(raised.exception)

    self.assertIn("its bytes are not those that were written (CRC-32C)", refused(data[:-1] + bytes([data[-1] ^ 1])))
    self.assertIn(f"{len(data) - 5} bytes instead of {len(data)}", refused(data[:-5]))
    self.assertIn("no line of a manifest", refused(of_manifest=lines[0] + b"garbage\n" + b"".join(lines[1:])))
    self.assertIn("not a manifest of tensor taps, version 1", refused(of_manifest=b'{"r2cc_taps": 2}\n'))
    self.assertIn("is no segment of this folder", refused(of_manifest=text.replace(segment.name.encode(), b"../x.safetensors")))
    self.assertIn("are missing, and it does not say why", refused(of_manifest=b"".join(lines[:2] + lines[3:])))
    self.assertIn("it names gaps that are none", refused(of_manifest=text.replace(b'"gaps": []', b'"gaps": [[500, 1, 0, 0, 0]]', 1)))
    self.assertIn("is no gap", refused(of_manifest=text.replace(b'"gaps": []', b'"gaps": [["x"]]', 1)))
    segment.unlink()
    with self.assertRaisesRegex(observe.Error, "is in the manifest and not here"):
      verified(self.folder)

  def test_hostile_segments_are_refused_by_readers_too(self):
    self.write(3)
    segment = self.segments()[0]
    data = segment.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    head = data[8:8 + length]
    for changed, line in (
        (struct.pack("<Q", 1 << 60) + data[8:], "its head would have 1152921504606846976 bytes"),
        (b"abc", "no file of safetensors"),
        (data[:8] + b"x" * length + data[8 + length:], "its head is no JSON of ours"),
        (data[:8] + head.replace(b'"data_offsets":[0,', b'"data_offsets":[9,') + data[8 + length:], "makes no sense"),
        (data[:8] + head.replace(b'"0/a"', b'"x/a"') + data[8 + length:], "is no tensor of a step"),
        (data[:8] + head.replace(b'"0/@"', b'"0/%"') + data[8 + length:], "step 0 has no header"),
        (data[:8 + length] + b"x" + data[9 + length:], "the header of step 0 is not its own")):
      segment.write_bytes(changed)
      with self.subTest(line=line), self.assertRaisesRegex(observe.Error, line):
        list(observe.read(self.folder))

  def test_files_are_never_changed(self):
    self.write(2)
    with self.assertRaisesRegex(observe.Error, "is there already: another run of that name and rank; files are never changed"):
      self.write(2)

  def test_a_folder_that_cannot_be_written_is_one_line(self):
    with self.assertRaisesRegex(observe.Error, "^folder /proc/none cannot be made: "):
      observe.attach(stand_in.Module(a=stand_in.scaled(1)), ["a"], run=self.run_name, files="/proc/none", policy=SMALL)
    with self.assertRaisesRegex(observe.Error, "no manifest"):
      observe.read(tempfile.gettempdir() if not list(pathlib.Path(tempfile.gettempdir()).glob("*.manifest")) else "/")

  def job(self, body):
    program = ("from observe.python import stand_in\nfrom r2cc import observe\nimport resource, signal\n"
               "model = stand_in.Module(a=stand_in.scaled(1))\n"
               f"taps = observe.attach(model, ['a'], run={self.run_name!r}, files={str(self.folder)!r},\n"
               "                      policy=observe.Policy(host_mib=4, segment_mib=1/64, segment_s=0.01))\n" + body)
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "PYTHONPATH": ":".join(sys.path)})

  def test_a_killed_job_leaves_no_half_of_a_segment(self):
    for attempt in range(3):
      self.folder = self.folder.parent / f"killed{attempt}"
      job = self.job("number = 0\nwhile True:\n  model(stand_in.Tensor([number] * 100)); number += 1\n"
                     f"  if number == {200 + 300 * attempt}: print('x', flush=True)\n")
      try:
        self.assertEqual(job.stdout.read(1), b"x")
      finally:
        job.send_signal(signal.SIGKILL)
        job.communicate()
      line, = verified(self.folder)
      self.assertIn("the producer did not close", line)
      for item in observe.read(self.folder):
        if isinstance(item, observe.Step):
          self.assertEqual(item["a"].tolist(), [item.number] * 100)

  def test_a_full_disk_is_one_line_and_counted(self):
    # A bound on the size of files emulates a full disk: write() fails the same way.
    job = self.job("signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                   "def go(first):\n  for number in range(first, first + 100): model(stand_in.Tensor([number] * 100))\n"
                   "go(0); taps.flush()\n"
                   "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))\n"
                   "go(100)\n"
                   "try:\n  taps.flush()\nexcept observe.Error as error: print('flush:', error)\n"
                   "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
                   "go(200); taps.flush()\nprint(taps.counters()['lost_to_files'])\ntaps.close()\n")
    out, err = job.communicate()
    self.assertEqual(job.returncode, 0, err.decode())
    lines = out.decode().splitlines()
    self.assertIn("File too large", lines[0])
    lost = int(lines[1])
    self.assertGreater(lost, 0)
    self.assertLessEqual(len(err.decode().splitlines()), 12, err.decode())
    self.assertEqual(verified(self.folder),
                     [f"{self.run_name} rank 0: 300 steps, {300 - lost} records whole, {lost} lost and counted, 0 not wanted"])
    gaps = [item for item in observe.read(self.folder) if isinstance(item, observe.Gap)]
    self.assertEqual(sum(gap.lost for gap in gaps), lost)
    self.assertEqual([path.name for path in self.folder.iterdir() if path.name.endswith(".part")], [])

  def test_a_manifest_that_ends_in_half_a_line_is_read_until_there(self):
    self.write(3)
    with self.manifest().open("ab") as file:
      file.write(b'{"segment": "')
    self.assertEqual(len(list(observe.read(self.folder))), 3)
