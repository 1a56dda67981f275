"""The benchmarks run, and say what they promise. No figure is judged here: that needs a quiet machine."""

import json
import subprocess
import unittest
from typing import Any

from testing.lab import namespaces
from testing.lab.binaries import built_file

_TIMEOUT_S = 240


def lines_of(program: str, *flags: str) -> list[dict[str, Any]]:
  argv = [str(built_file(f"tests/bench/{program}")), "--json", *flags]
  done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
  if done.returncode != 0:
    raise AssertionError(f"{program} ended with {done.returncode}: {done.stderr[-2000:]}")
  return [json.loads(line) for line in done.stdout.splitlines()]


class Compare(unittest.TestCase):

  def test_reports_both_plugins_and_iperf3(self):
    result = lines_of("compare", "--quick", "--rails", "2", "--pairs", "2", "--large-pairs", "1")[-1]
    self.assertEqual([(row["rails"], row["size_bytes"] >> 20) for row in result["large"]], [(2, 16), (2, 64), (2, 256)])
    self.assertEqual([(row["rails"], row["size_bytes"]) for row in result["small"]], [(2, 8 << step) for step in range(14)])
    for row in result["large"]:
      for name in ("r2cc_busbw_gbps", "plain_busbw_gbps", "busbw_ratio", "r2cc_cpu_s_per_gb", "plain_cpu_s_per_gb", "cpu_ratio",
                   "r2cc_of_iperf3"):
        self.assertGreater(row[name], 0, name)
    for row in result["small"]:
      self.assertGreater(row["time_ratio"], 0)
      self.assertIsNone(row["time_ratio_high"], "2 pairs bound nothing")
    self.assertEqual([row["rails"] for row in result["iperf3"]], [2])
    self.assertGreaterEqual(result["machine"]["others_share"], 0)

  def test_a_plugin_that_does_not_run_is_named(self):
    argv = [str(built_file("tests/bench/compare")), "--small", "--pairs", "1", "--rails", "1",
            "--plugin", str(built_file("tools/perf/r2cc-perf"))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    self.assertEqual((done.returncode, done.stdout), (1, ""))
    self.assertIn("give --plugin the path", done.stderr)


class NeedsRoot(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    reason = namespaces.missing_feature()
    if reason is not None:
      raise unittest.SkipTest(f"needs root: {reason}")

  def test_collnet_starts(self):
    result = lines_of("collnet_starts", "--starts", "10", "--members", "3")[-1]
    self.assertEqual((result["starts"], result["with_fault"], result["failed"]), (10, 1, 0), result["lines"])

  def test_collnet_next_to_a_ring(self):
    result = lines_of("collnet", "--nodes", "2", "--rails", "2", "--rate", "200mbit", "--size", "1M", "--rounds", "1", "--iterations", "1",
                      "--lost", "0,1")[-1]
    self.assertEqual(list(result), ["1M, 0 of 2 lost", "1M, 1 of 2 lost"])
    for row in result.values():
      for name in ("bound_ms", "collnet_ms", "ring_ms"):
        self.assertGreater(row[name], 0, name)

  def test_faults_of_both_fabrics(self):
    result = lines_of("faults", "--cases", "cut", "--runs", "1")
    self.assertEqual([(row["case"], row["fabric"], row["runs"]) for row in result], [("cut", "rail", 1), ("cut", "full", 1)])
    for row in result:
      self.assertEqual((row["wrong"], row["late_writes"], row["errors"]), (0, 0, 0), row)
      self.assertIsInstance(row["stall_ms_p99"], float)
      # Where a migration must be, one is counted: so that 0 of them elsewhere says something.
      self.assertGreaterEqual(row["migrations"], 1, row)

  def test_a_plugin_without_protection_stalls_and_fails(self):
    result = lines_of("faults", "--cases", "different", "--fabric", "rail", "--runs", "1", "--plugin",
                      str(built_file("tests/control/libnccl-net-plain.so")))[-1]
    self.assertEqual(result["errors"], 1, result)
    self.assertGreater(result["stall_ms_p50"], 1000)
    self.assertFalse(result["as_asked"])

  def test_detect_times_both_kinds_of_faults(self):
    result = lines_of("detect", "--runs", "2", "--minutes", "0.1", "--hogs", "1")[-1]
    self.assertEqual((result["runs"], result["nodes"], result["wrong"], result["late_writes"]), (2, 4, 0, 0), result)
    for kind in ("event", "silence"):
      self.assertGreater(result[f"{kind}_to_page_ms_p99"], 0, result)
    self.assertEqual(result["false_by_state"]["FAILED"], 0, result)

  def test_idle_daemons_are_watched_with_and_without_a_job(self):
    result = lines_of("idle", "--seconds", "2", "--rails", "2")[-1]
    self.assertEqual((result["nodes"], result["rails"]), (2, 2), result)
    self.assertTrue(0 < result["core_share_without_job"] < 1 and 0 < result["core_share"] < 1, result)
    self.assertGreater(result["memory_peak_mib"], 1)


class NoFalseAlarm(unittest.TestCase):

  def test_counts_stops_and_errors(self):
    result = lines_of("no_false_alarm", "--minutes", "0.2", "--ranks", "2", "--hogs", "1", "--deadline-ms", "1500")[-1]
    self.assertEqual((result["errors"], result["wrong"], result["late_writes"]), (0, 0, 0), result)
    self.assertGreaterEqual(result["stops"], 1)
    self.assertGreater(result["iterations"], 0)


class SickRail(unittest.TestCase):

  def test_counts_stalls_of_connections_that_are_swallowed(self):
    result = lines_of("sick_rail", "--minutes", "0.2", "--connections", "1", "--lost", "100")[-1]
    self.assertEqual((result["wrong"], result["late_writes"], result["failed"]), (0, 0, []), result)
    self.assertGreaterEqual(result["stalls"], 1)
    self.assertGreaterEqual(result["links_given_up"], 1)
    self.assertGreater(result["of_sound_rails"], 0)
