"""Tests the preparation of a kernel before a guest boots it."""

import lzma
import pathlib
import tempfile
import unittest

from testing.guest import kernel


class ElfOf(unittest.TestCase):

  def test_the_elf_file_is_found_behind_the_loader(self):
    elf = b"\x7fELF" + b"kernel" * 100
    self.assertEqual(kernel.elf_of(b"loader" * 50 + lzma.compress(elf) + b"trailer"), elf)

  def test_a_file_that_is_no_kernel_is_refused_by_name(self):
    for image, words in ((b"loader", "no xz stream"), (lzma.compress(b"text"), "no ELF file"),
                         (lzma.compress(b"\x7fELF" * 99).replace(b"\x00\x04", b"\xff\xff", 1), "cannot be unpacked")):
      with self.subTest(words), self.assertRaisesRegex(kernel.KernelError, words):
        kernel.elf_of(image)


class InOrder(unittest.TestCase):

  def test_each_module_comes_once_and_after_what_it_needs(self):
    needs = {"rxe": ["core", "tunnel"], "core": ["base"], "tunnel": ["base"], "base": [], "veth": []}
    self.assertEqual(kernel.in_order(["rxe", "veth", "core"], needs.__getitem__), ["base", "core", "tunnel", "rxe", "veth"])

  def test_a_circle_is_named(self):
    with self.assertRaisesRegex(kernel.KernelError, "a b a"):
      kernel.in_order(["a"], {"a": ["b"], "b": ["a"]}.__getitem__)


class Folder(unittest.TestCase):

  def test_a_folder_without_a_kernel_or_module_is_named(self):
    with tempfile.TemporaryDirectory() as name:
      folder = pathlib.Path(name)
      with self.assertRaisesRegex(kernel.KernelError, f"no kernel in {name}"):
        kernel.Kernel(folder)
      (folder / "boot").mkdir()
      (folder / "boot/vmlinuz-6.1").write_bytes(b"")
      with self.assertRaisesRegex(kernel.KernelError, "vmlinuz-6.1 has no module veth"):
        kernel.Kernel(folder).modules(["veth"])
