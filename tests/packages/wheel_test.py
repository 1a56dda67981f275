"""The wheels in a fresh folder of packages: `python -m r2cc` as a user has it, and the plugin under the name by which NCCL looks for it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from bazel import unittest_main


class WheelTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.wheel, cls.observe, cls.perf = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
      raise unittest.SkipTest("needs pip: installs the wheel")
    cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
    install = ["install", "--quiet", "--no-index", "--no-deps", "--target", cls.folder / "site", cls.wheel, cls.observe]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, stdin=subprocess.DEVNULL)

  def python(self, *words: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "r2cc", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          cwd=self.folder, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.folder / "site"), **variables})

  def test_the_lines_of_env_are_a_shells(self):
    lines = self.python("env").stdout
    shown = subprocess.run(["sh", "-c", f"{lines}\nenv"], capture_output=True, text=True, check=True).stdout
    self.assertIn("NCCL_NET_PLUGIN=r2cc\n", shown)
    self.assertEqual(json.loads(self.python("env", "--json").stdout)["LD_LIBRARY_PATH"], str((self.folder / "site/r2cc/lib").resolve()))

  def test_a_command_that_is_run_finds_the_plugin_by_name(self):
    look = "import ctypes; print(*[hasattr(ctypes.CDLL(f), s) for f, s in (('libnccl-net-r2cc.so', 'ncclNetPlugin_v8'), " \
           "('libnccl-tuner-r2cc.so', 'ncclTunerPlugin_v4'), ('libnccl-profiler-r2cc.so', 'ncclProfiler_v4'))])"
    self.assertEqual(self.python("run", "--", sys.executable, "-c", look).stdout, "True True True\n")

  def test_a_seat_is_preloaded(self):
    look = "import ctypes, os; print(os.environ['R2CC_SEAT'], hasattr(ctypes.CDLL(None), 'ncclAllReduce'))"
    ran = self.python("run", "--seat", "--", sys.executable, "-c", look)
    self.assertEqual((ran.stdout, ran.stderr), ("1 True\n", ""))

  def test_a_job_runs_with_it(self):
    plugin = self.folder / "site/r2cc/lib/libnccl-net-r2cc.so"
    ran = self.python("run", "--", str(self.perf), "--plugin", str(plugin), "--ranks", "2", "-b", "1M", "-e", "1M", "-n", "3",
                      R2CC_RAILS="lo")
    self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

  def test_its_exit_status_is_the_commands(self):
    self.assertEqual(self.python("run", "--", "sh", "-c", "exit 7").returncode, 7)
    missing = self.python("run", "--", "no-such-program")
    self.assertEqual((missing.returncode, missing.stderr), (127, "r2cc: cannot run no-such-program: No such file or directory\n"))
    self.assertEqual(self.python("run").returncode, 2)

  def test_another_plugin_is_not_replaced(self):
    refused = self.python("run", "--", "true", NCCL_NET="IB")
    self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1))
    self.assertIn("NCCL_NET=IB names another plugin", refused.stderr)

  def test_doctor_and_ctl_are_r2ccctls(self):
    self.assertIn("plugin", self.python("doctor", "--all").stdout)
    self.assertNotIn("r2ccd is not running", self.python("doctor", "--all").stdout)
    version = self.python("ctl", "--version")
    self.assertEqual(version.returncode, 0, version.stderr)
    self.assertIn(self.wheel.name.split("-")[1], version.stdout)

  def test_tensor_taps_add_to_the_same_package(self):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.folder / "site")}
    both = "import r2cc.environment, r2cc.observe, sys; print(r2cc.observe.Policy.__name__, 'ctypes' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", both], check=True, capture_output=True, text=True, cwd=self.folder, env=environment)
    self.assertEqual(ran.stdout, "Policy True\n")
    version = subprocess.run([self.folder / "site/bin/r2cc-observe", "--version"], check=True, capture_output=True, text=True,
                             cwd=self.folder, env=environment)
    self.assertIn(self.observe.name.split("-")[1], version.stdout)
