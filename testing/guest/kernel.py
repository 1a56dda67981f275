"""Prepares the kernel that guests boot, and its modules, as bazelw unpacked them."""

import lzma
import pathlib
import subprocess
from typing import Callable, Iterable

FOLDER = pathlib.Path("/var/cache/r2cc/guest_kernel_2")  # bazelw writes it
_XZ_MAGIC = b"\xfd7zXZ\x00"
_ELF_MAGIC = b"\x7fELF"


class KernelError(Exception):
  """The unpacked kernel is damaged or incomplete; the message has the details."""


def elf_of(image: bytes) -> bytes:
  """The ELF file within a bzImage of Debian. An emulated processor takes ten seconds to unpack it: the host is faster."""
  start = image.find(_XZ_MAGIC)
  if start < 0:
    raise KernelError("the kernel image holds no xz stream")
  try:
    elf = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[start:])
  except lzma.LZMAError as error:
    raise KernelError(f"the kernel image cannot be unpacked: {error}") from error
  if not elf.startswith(_ELF_MAGIC):
    raise KernelError("what the kernel image holds is no ELF file")
  return elf


def in_order(wanted: Iterable[str], needs: Callable[[str], Iterable[str]]) -> list[str]:
  """All modules to load for `wanted`, each after those that it `needs`."""
  order: list[str] = []

  def add(name: str, above: tuple[str, ...]) -> None:
    if name in above:
      raise KernelError(f"modules need each other: {' '.join((*above, name))}")
    if name not in order:
      for needed in needs(name):
        add(needed, (*above, name))
      order.append(name)

  for name in wanted:
    add(name, ())
  return order


class Kernel:
  """One unpacked kernel."""

  def __init__(self, folder: pathlib.Path):
    images = sorted(folder.glob("boot/vmlinuz-*"))
    if not images:
      raise KernelError(f"there is no kernel in {folder}; remove the folder, and bazelw unpacks one again")
    self._image = images[-1]
    modules = folder / "lib/modules" / self._image.name.removeprefix("vmlinuz-")
    # A file may have the name a-b.ko and its module the name a_b.
    self._files = {path.stem.replace("-", "_"): path for path in modules.rglob("*.ko")}

  def elf(self) -> bytes:
    return elf_of(self._image.read_bytes())

  def modules(self, wanted: Iterable[str]) -> list[pathlib.Path]:
    """The files of `wanted` and of what they need, in the order in which to load them."""
    return [self._file(name) for name in in_order(wanted, self._needs)]

  def _file(self, name: str) -> pathlib.Path:
    if name not in self._files:
      raise KernelError(f"{self._image.name} has no module {name}")
    return self._files[name]

  def _needs(self, name: str) -> list[str]:
    listed = subprocess.run(["/sbin/modinfo", "-F", "depends", str(self._file(name))], capture_output=True, text=True, check=True)
    return [needed.replace("-", "_") for needed in listed.stdout.strip().split(",") if needed]
