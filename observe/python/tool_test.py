"""r2cc-observe, and the first example."""

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from observe.python import stand_in
from r2cc import observe
from r2cc.observe import _tool

ENVIRONMENT = {**os.environ, "PYTHONPATH": ":".join(sys.path)}


def tool(*arguments):
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = _tool.main(list(arguments))
  return code, out.getvalue(), err.getvalue()


def run_name(of):
  return f"{of}-{os.getpid()}"


setUpModule = stand_in.skip_if_sanitized


class ToolTest(unittest.TestCase):

  def setUp(self):
    temporary = tempfile.TemporaryDirectory()
    self.addCleanup(temporary.cleanup)
    self.folder = temporary.name

  def taps(self, of, points=("a",), **options):
    self.model = stand_in.Module(a=stand_in.scaled(1))
    taps = observe.attach(self.model, list(points), run=run_name(of), policy=observe.Policy(host_mib=1 / 16), **options)
    self.addCleanup(taps.close)
    return taps

  def test_ls_shows_producers_in_three_forms(self):
    self.taps("ls")
    for number in range(3):
      self.model(stand_in.Tensor([number]))
    code, out, _ = tool("ls", run_name("ls"), "-o", "json")
    self.assertEqual(code, 0)
    run, = json.loads(out)
    self.assertEqual((run["run"], run["pid"], run["state"], run["steps"], run["records"]), (run_name("ls"), os.getpid(), "open", 3, 3))
    self.assertRegex(tool("ls")[1], rf"(?m)^{run_name('ls')} +0 +{os.getpid()} open +3 +3 +0 +0$")
    self.assertIn(f'r2cc_taps_records_total{{run="{run_name("ls")}",rank="0"}} 3\n', tool("ls", "-o", "prometheus")[1])

  def test_tail_and_dump_show_steps_and_gaps(self):
    taps = self.taps("dump", ["a", "a:stats"], tags={"request": [5]})
    for number in range(5):
      self.model(stand_in.Tensor([number, 2]))
      if number == 1:
        taps.disable()
      if number == 2:
        taps.enable()
    code, out, _ = tool("dump", run_name("dump"), "--last", "2")
    self.assertEqual((code, out.splitlines()), (0, [
        "step 2", "  #request I64[1] 5", "  a F32[2] 2, 2", "  a:stats STATS[] 2..2 mean 2 NaN 0",
        "gap from step 3: 1 steps; dropped on the device 0, on the host 0, not wanted 1, missed here 0",
        "step 4", "  #request I64[1] 5", "  a F32[2] 4, 2", "  a:stats STATS[] 2..4 mean 3 NaN 0"]))
    taps.close()
    self.assertEqual(tool("dump", run_name("dump"))[0], 2)
    taps = self.taps("tail")
    self.model(stand_in.Tensor([7]))
    self.assertEqual(tool("tail", run_name("tail"), "--timeout", "0.01")[1].splitlines(), ["step 0", "  a F32[1] 7"])

  def test_verify_reports_what_is_whole_and_what_is_not(self):
    taps = self.taps("verify", files=self.folder)
    self.model(stand_in.Tensor([7]))
    taps.close()
    self.assertEqual(tool("verify", self.folder),
                     (0, f"{run_name('verify')} rank 0: 1 steps, 1 records whole, 0 lost and counted, 0 not wanted\n", ""))
    segment, = pathlib.Path(self.folder).glob("*.safetensors")
    segment.write_bytes(segment.read_bytes()[:-1])
    code, _, err = tool("verify", self.folder)
    self.assertEqual((code, err.count("\n")), (1, 1))

  def test_hold_keeps_what_a_killed_job_left(self):
    run = run_name("hold")
    program = ("from observe.python import stand_in\nfrom r2cc import observe\n"
               "model = stand_in.Module(a=stand_in.scaled(1))\n"
               f"taps = observe.attach(model, ['a'], run={run!r}, policy=observe.Policy(host_mib=1))\n"
               "for number in range(150): model(stand_in.Tensor([number] * 50))\nprint('x', flush=True)\ninput()\n")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": ENVIRONMENT}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as job:
      self.assertEqual(job.stdout.read(1), b"x")
      with subprocess.Popen([sys.executable, "-m", "r2cc.observe", "hold", run], **pipes) as holder:
        try:
          self.assertIn(b"holding", holder.stdout.readline())
          job.kill()
          job.wait()
          code, out, _ = tool("ls", run, "-o", "json")
          self.assertEqual((code, json.loads(out)[0]["state"]), (0, "died"))
          steps = [item for item in observe.read(run, follow=False) if isinstance(item, observe.Step)]
          self.assertEqual([(step.number, step["a"].tolist()[0]) for step in steps[-100:]], [(n, n) for n in range(50, 150)])
        finally:
          holder.send_signal(signal.SIGTERM)
        self.assertEqual(holder.wait(), 0)
    self.assertEqual(tool("hold", run), (2, "", f"r2cc-observe: run {run}: no process of this user has it\n"))

  def agree(self, ranks, flipped=None, points=("a:hash", "b:hash")):
    """Each rank's files in a folder of its own; `flipped`: (rank, step)."""
    folders = []
    for rank in range(ranks):
      folder = os.path.join(self.folder, f"{ranks}-{flipped}-{rank}")
      model = stand_in.Module(a=stand_in.scaled(1), b=stand_in.scaled(2))
      with observe.attach(model, list(points), run=run_name("agree"), rank=rank, files=folder, policy=observe.Policy(host_mib=1 / 16)):
        for step in range(20):
          numbers = [step + 0.5] * 30
          if (rank, step) == flipped:
            numbers[17] = float.fromhex("0x1.000002p0") * numbers[17]  # the last bit
          model(stand_in.Tensor(numbers))
      folders.append(folder)
    return folders

  def test_agree_names_step_point_and_rank(self):
    self.assertEqual(tool("agree", *self.agree(3)), (0, "3 ranks agree: 20 steps, 40 hashes\n", ""))
    folders = self.agree(3, (1, 12))
    self.assertEqual(tool("agree", *folders), (1, f"step 12: a:hash: rank 1 of {folders[1]} differs\n", ""))
    folders = self.agree(2, (1, 0))
    self.assertEqual(tool("agree", *folders), (1, f"step 0: a:hash: rank 0 of {folders[0]}, rank 1 of {folders[1]} differ\n", ""))

  def test_agree_reports_what_it_found(self):
    folders, log = self.agree(3, (1, 12)), os.path.join(self.folder, "said")
    program = pathlib.Path(self.folder, "ctl")
    program.write_text(f"#!/bin/sh\nfor word; do echo \"$word\"; done > {log}\n[ \"$1\" != fail ] || {{ echo no r2ccd >&2; exit 3; }}\n",
                       encoding="utf-8")
    program.chmod(0o755)
    line = f"step 12: a:hash: rank 1 of {folders[1]} differs\n"
    self.assertEqual(tool("agree", "--report", "--r2ccctl", f"{program} -v", *folders), (1, line, ""))
    self.assertEqual(pathlib.Path(log).read_text(encoding="utf-8").splitlines(), [
        "-v", "report-disagreement", "--step=12", "--point=a:hash", f"--rank=rank 1 of {folders[1]}", "--", ", ".join(folders)])
    # The result does not change.
    for command, why in ((f"{program} fail", "no r2ccd"), ("/nonexistent/r2ccctl", "No such file or directory")):
      code, out, err = tool("agree", "--report", "--r2ccctl", command, *folders)
      self.assertEqual((code, out, err.count("\n")), (1, line, 1))
      self.assertIn("r2cc-observe: the disagreement is not reported to r2ccd: ", err)
      self.assertIn(why, err)
    os.unlink(log)
    same = self.agree(2)
    self.assertEqual(tool("agree", "--report", "--r2ccctl", str(program), *same)[0], 0)
    self.assertFalse(os.path.exists(log))

  def test_agree_reports_that_there_is_nothing_to_compare(self):
    one, two = self.agree(2)
    self.assertEqual(tool("agree", one), (2, "", "r2cc-observe: 1 ranks: there is nobody to compare with\n"))
    other = self.agree(2, "copies", points=("a",))
    self.assertIn("nothing was compared", tool("agree", *other)[2])
    unlike = self.agree(2, "unlike", points=("a:hash",))
    self.assertIn("their layouts are unlike", tool("agree", one, two, unlike[0])[2])

  def test_agree_reads_producers_that_run(self):
    model = stand_in.Module(a=stand_in.scaled(1))
    for rank in range(3):
      self.addCleanup(observe.attach(model, ["a:hash"], run=run_name("live"), rank=rank, policy=observe.Policy(host_mib=1 / 16)).close)
    for step in range(10):
      model(stand_in.Tensor([step]))
    self.assertEqual(tool("agree", run_name("live"))[:2], (0, "3 ranks agree: 10 steps, 10 hashes\n"))

  def test_ten_thousand_steps_without_a_flip_agree(self):
    models, x = [stand_in.Module(a=stand_in.scaled(1)) for _ in range(3)], stand_in.Tensor([0.] * 64)
    for rank, model in enumerate(models):
      policy = observe.Policy(host_mib=4)
      self.addCleanup(observe.attach(model, ["a:hash"], run=run_name("many"), rank=rank, policy=policy).close)
    for step in range(10_000):
      x.storage[step % 64] = step + 0.5
      for model in models:
        model(x)
    self.assertEqual(tool("agree", run_name("many")), (0, "3 ranks agree: 10000 steps, 10000 hashes\n", ""))

  def follow(self, name, flipped_step):
    """Three ranks run, one of which flips a bit in a step: the run, and how agree --follow ended."""
    run, x = run_name(name), stand_in.Tensor([1.5] * 40)
    models = [stand_in.Module(a=stand_in.scaled(1)) for _ in range(3)]
    taps = [observe.attach(one, ["a:hash"], run=run, rank=rank, policy=observe.Policy(host_mib=1 / 16)) for rank, one in enumerate(models)]
    watcher = subprocess.Popen([sys.executable, "-m", "r2cc.observe", "agree", "--follow", run], stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
      deadline_s = time.monotonic() + 60
      for step in range(2000):
        for rank, one in enumerate(models):
          x.storage[7] = 2.5 if (rank, step) == (2, flipped_step) else 1.5
          one(x)
        time.sleep(.0005)
        if watcher.poll() is not None or time.monotonic() > deadline_s:
          break
    finally:
      for one in taps:
        one.close()
    out, _ = watcher.communicate(timeout=60)
    return run, watcher.returncode, out.decode()

  def test_agree_follows_ranks_that_run(self):
    run, code, out = self.follow("follow", None)
    self.assertEqual(code, 0, out)
    self.assertRegex(out, r"^3 ranks agree: \d+ steps, \d+ hashes$")
    run, code, out = self.follow("flipped", 1500)
    self.assertEqual((code, out), (1, f"step 1500: a:hash: rank 2 of {run} differs\n"))

  def test_agree_follows_no_folder(self):
    self.assertIn("--follow is for runs of this machine", tool("agree", "--follow", self.folder, self.folder)[2])

  def test_the_first_example_runs_and_shows_a_gap(self):
    first = pathlib.Path(_tool.__file__).parents[3] / "examples" / "first.py"
    if not first.exists():
      first = pathlib.Path("observe/examples/first.py")
    done = subprocess.run([sys.executable, "-S", str(first)], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    self.assertIn("Gap(first=", done.stdout)
    self.assertIn("producer and reader agree on every count", done.stdout)
    self.assertEqual(done.stderr, "")
