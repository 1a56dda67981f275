"""taps-sanitize: compute-sanitizer's memcheck over small steps of each kind."""

import os
import re
import shutil
import subprocess
import sys
import time

PARTS = ("tiny", "tiny-flat", "tiny-rows", "tiny-first")


def run(results, program, quick, only=None):
  del quick, only
  tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
  if not os.path.exists(tool):
    results.add("taps-sanitize", "memcheck", passed=None, not_run="compute-sanitizer is not on this machine")
    results.print_line("taps-sanitize: NOT RUN: compute-sanitizer is not on this machine")
    return 0
  begin_s = time.monotonic()
  out = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"sanitize-{os.getpid()}")
  command = [tool, "--tool", "memcheck", "--target-processes", "application-only", "--print-limit", "20", sys.executable, program]
  command += ["--cases", "taps-match", "--only", ",".join(PARTS), "--out", out]
  try:
    done = subprocess.run(command, capture_output=True, text=True, timeout=230)
    output, code = done.stdout + done.stderr, done.returncode
  except subprocess.TimeoutExpired as error:
    output, code = str(error.stdout or "")[-3000:], "timed out"
  found = re.search(r"ERROR SUMMARY: (\d+) error", output)
  rows = re.findall(r'"case": "taps-match", "variant": "([^"]+)", "passed": (true|false)', output)
  passed = found is not None and found[1] == "0" and code == 0 and len(rows) == len(PARTS)
  if not passed:
    results.print_line("taps-sanitize: " + output[-3000:])
  results.add("taps-sanitize", "memcheck", passed=passed, errors=None if found is None else int(found[1]), code=code, steps=dict(rows),
              took_s=round(time.monotonic() - begin_s, 1))
  return 0 if passed else 1
