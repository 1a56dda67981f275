"""Tests the checks before a guest boots, and those of its kernel's log. //tests/rigs/one_guest:guest_test boots guests."""

import pathlib
import unittest
from unittest import mock

from testing.guest import guest


class MissingFeature(unittest.TestCase):

  def test_a_missing_program_is_named_with_its_package(self):
    nowhere = pathlib.Path("/nowhere")
    with mock.patch.object(guest.kernel, "FOLDER", nowhere), mock.patch.object(guest.shutil, "which", return_value="/bin/x"):
      self.assertIn(guest.missing_feature(), ("there is no kernel in /nowhere (R2CC's bazelw unpacks it on Debian)",
                                              "there is no /etc/libibverbs.d/rxe.driver (R2CC's bazelw installs it)"))
    with mock.patch.object(guest.shutil, "which", return_value=None):
      self.assertEqual(guest.missing_feature(), "there is no qemu-system-x86_64 (R2CC's bazelw installs it)")


class Complaints(unittest.TestCase):

  def test_a_damaged_kernel_is_recognised(self):
    log = "eth0: link up\nrefcount_t: underflow; use-after-free.\nWARNING: CPU: 0 PID: 1 at lib/refcount.c:28\nrdma_rxe: loaded\n"
    self.assertEqual(len(guest.Result(0, "", log, pathlib.Path()).kernel_complaints()), 2)
