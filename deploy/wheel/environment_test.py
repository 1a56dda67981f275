"""What `python -m r2cc env` sets, from what is set."""

import pathlib
import unittest

from r2cc import environment

LIBRARIES = pathlib.Path("/venv/r2cc/lib")
OURS = {"NCCL_NET_PLUGIN": "r2cc", "NCCL_NET": "R2CC", "NCCL_NET_PLUGIN_REF_COUNT": "1", "LD_LIBRARY_PATH": "/venv/r2cc/lib"}


class EnvironmentTest(unittest.TestCase):

  def test_an_empty_environment(self):
    self.assertEqual(environment.variables(LIBRARIES, {"HOME": "/root"}), OURS)

  def test_the_users_values_stay_behind_ours_and_repeats_change_nothing(self):
    once = environment.variables(LIBRARIES, {"LD_LIBRARY_PATH": "/opt/cuda::/opt/mpi"})
    self.assertEqual(once["LD_LIBRARY_PATH"], "/venv/r2cc/lib:/opt/cuda:/opt/mpi")
    self.assertEqual(environment.variables(LIBRARIES, once), once)

  def test_the_users_count_of_references_stays(self):
    self.assertEqual(environment.variables(LIBRARIES, {"NCCL_NET_PLUGIN_REF_COUNT": "2"}), OURS | {"NCCL_NET_PLUGIN_REF_COUNT": "2"})

  def test_the_plugin_by_its_file_is_ours(self):
    for value in ("libnccl-net-r2cc.so", "/venv/r2cc/lib/libnccl-net-r2cc.so"):
      self.assertEqual(environment.variables(LIBRARIES, {"NCCL_NET_PLUGIN": value}), OURS)

  def test_a_seat_needs_the_tuner_and_stands_before_other_libraries(self):
    for given, wanted in (("", ""), ("/opt/a.so /opt/b.so", ":/opt/a.so:/opt/b.so")):
      found = environment.variables(LIBRARIES, {"LD_PRELOAD": given}, seat=True)
      preload = {"LD_PRELOAD": "/venv/r2cc/lib/libr2cc-nccl.so" + wanted}
      self.assertEqual(found, OURS | preload | {"NCCL_TUNER_PLUGIN": "r2cc", "R2CC_SEAT": "1"})
      self.assertEqual(environment.variables(LIBRARIES, found, seat=True), found)
    with self.assertRaisesRegex(environment.AnotherPlugin, "^NCCL_TUNER_PLUGIN=ofi .*unset"):
      environment.variables(LIBRARIES, {"NCCL_TUNER_PLUGIN": "ofi"}, seat=True)

  def test_another_plugin_is_refused_by_name(self):
    for name, value in (("NCCL_NET_PLUGIN", "aws-ofi"), ("NCCL_NET", "IB"), ("NCCL_NET_PLUGIN", "/elsewhere/libnccl-net-r2cc.so")):
      with self.subTest(name=name), self.assertRaisesRegex(environment.AnotherPlugin, f"^{name}={value} .*unset {name}"):
        environment.variables(LIBRARIES, {name: value})
