"""Three ranks of the host device, `r2cc-observe agree --report`, and a real r2ccd: a flipped bit is an event of `r2ccctl events`."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

from bazel import unittest_main
from observe.python import stand_in
from r2cc import observe
from testing.lab.loopback import free_port

ENVIRONMENT = {**os.environ, "PYTHONPATH": ":".join(sys.path)}

setUpModule = stand_in.skip_if_sanitized


class ReportTest(unittest.TestCase):

  def setUp(self):
    temporary = tempfile.TemporaryDirectory()
    self.addCleanup(temporary.cleanup)
    self.folder = pathlib.Path(temporary.name)
    r2ccd, r2ccctl = unittest_main.test_args()
    self.r2ccctl = [r2ccctl, "--run_dir", str(self.folder / "run")]
    self.r2ccd = r2ccd

  def start_daemon(self):
    grpc, http = (f"127.0.0.1:{free_port('127.0.0.1')}" for _ in range(2))
    (self.folder / "conf").write_text(f'node: "n0"\nlisten: "{grpc}"\nhttp {{ listen: "{http}" }}\n'
                                      'nics { name: "rail0" address: "127.7.3.1" }\n', encoding="utf-8")
    with open(self.folder / "log", "wb") as log:
      daemon = subprocess.Popen([self.r2ccd, "--config", str(self.folder / "conf"), "--run_dir", str(self.folder / "run"), "--state_dir",
                                 str(self.folder / "state")], stdout=log, stderr=log)
    self.addCleanup(daemon.wait)
    self.addCleanup(daemon.terminate)
    until = time.monotonic() + 60
    while subprocess.run(self.r2ccctl + ["health"], capture_output=True, check=False).returncode != 0:
      self.assertLess(time.monotonic(), until, (self.folder / "log").read_text(encoding="utf-8"))
      time.sleep(0.05)

  def events(self):
    done = subprocess.run(self.r2ccctl + ["events", "--kind", "disagreement", "-o", "json"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]

  def run_ranks(self, run, flipped_step, steps=4000):
    """The watcher's exit code, its line, standard error, and when it ended after the flip."""
    x = stand_in.Tensor([1.5] * 64)
    models = [stand_in.Module(attention=stand_in.scaled(1), mlp=stand_in.scaled(2)) for _ in range(3)]
    taps = [observe.attach(model, ["attention:hash", "mlp:hash"], run=run, rank=rank, policy=observe.Policy(host_mib=1))
            for rank, model in enumerate(models)]
    watcher = subprocess.Popen([sys.executable, "-m", "r2cc.observe", "agree", "--follow", "--report", "--r2ccctl",
                                shlex.join(self.r2ccctl), run], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
    flipped_s = None
    try:
      for step in range(steps):
        for rank, model in enumerate(models):
          if (rank, step) == (1, flipped_step):
            flipped_s = time.monotonic()
            x.storage[7] = 1.5000001  # one bit of a float32
          model(x)
          x.storage[7] = 1.5
        time.sleep(.0005)
        if watcher.poll() is not None:
          break
    finally:
      for one in taps:
        one.close()
    out, err = watcher.communicate(timeout=60)
    return watcher.returncode, out, err, time.monotonic() - (flipped_s or time.monotonic())

  def test_a_flipped_bit_is_an_event_of_r2ccd(self):
    self.start_daemon()
    run = f"report-{os.getpid()}"
    code, out, err, _ = self.run_ranks(f"{run}-same", None, steps=500)
    self.assertEqual((code, err), (0, ""))
    self.assertIn("3 ranks agree", out)
    self.assertEqual(self.events(), [])
    code, out, err, took_s = self.run_ranks(run, 1500)
    self.assertEqual((code, out, err), (1, f"step 1500: attention:hash: rank 1 of {run} differs\n", ""))
    self.assertLess(took_s, 10)
    event, = self.events()
    self.assertTrue(event["message"].startswith(
        f"ranks of run {run} disagree at step 1500, point attention:hash: rank 1 of {run} differs; reported by uid {os.getuid()} (pid "),
        event)
    self.assertEqual((event["kind"], event["node"]), ("disagreement", "n0"))
    self.assertEqual((event["audit"]["action"], event["audit"]["uid"]), ("disagreement", os.getuid()))

  def test_without_r2ccd_it_is_one_line_and_the_ranks_still_differ(self):
    run = f"alone-{os.getpid()}"
    code, out, err, _ = self.run_ranks(run, 1500)
    self.assertEqual((code, out), (1, f"step 1500: attention:hash: rank 1 of {run} differs\n"))
    self.assertEqual(err.count("\n"), 1, err)
    self.assertIn("r2cc-observe: the disagreement is not reported to r2ccd: r2ccctl: ", err)
