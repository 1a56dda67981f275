"""NCCL as programs use it that open it themselves (vLLM does so): by ctypes, with a communicator of its own next to PyTorch's."""

import ctypes
import pathlib
import time
from typing import Any

import torch
import torch.distributed as dist

from tests.gpu import values
from tests.gpu.device import Device

FLOAT32, SUM = 7, 0


class _UniqueId(ctypes.Structure):
  _fields_ = [("bytes", ctypes.c_byte * 128)]


def _path() -> str:
  """Of the NCCL that this process has."""
  for line in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
    path = line.split(maxsplit=5)[-1]
    if pathlib.Path(path).name.startswith("libnccl.so"):
      return path
  raise RuntimeError("this process has no libnccl.so")


class OpenedNccl:
  """A communicator of all ranks."""

  def __init__(self, device: Device):
    self._device, self._rank, self._world = device, dist.get_rank(), dist.get_world_size()
    self._nccl = ctypes.CDLL(_path())
    unique = _UniqueId()
    if self._rank == 0:
      self._must(self._nccl.ncclGetUniqueId(ctypes.byref(unique)))
    words: list[Any] = [bytes(unique)]
    dist.broadcast_object_list(words, src=0, device=device.torch)
    self._comm = ctypes.c_void_p()
    self._must(self._nccl.ncclCommInitRank(ctypes.byref(self._comm), self._world, _UniqueId.from_buffer_copy(words[0]), self._rank))
    self._call = 0

  def _must(self, result: int) -> None:
    if result:
      self._nccl.ncclGetErrorString.restype = ctypes.c_char_p
      raise RuntimeError(f"NCCL: {self._nccl.ncclGetErrorString(result).decode()}")

  def reduce(self, size_bytes: int, count: int) -> dict[str, Any]:
    """So many, one behind the other in place, each of whose elements is checked; their mean time without the check."""
    pattern = values.pattern("float32", self._world)
    elements = size_bytes // 4
    base = pattern.base(torch.arange(elements, dtype=torch.int64, device=self._device.torch)).to(torch.float32)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    wrong, seconds = 0, 0.0
    for _ in range(count):
      vector = base + pattern.shift(self._rank, self._call)
      self._device.sync()
      begin_s = time.monotonic()
      address = ctypes.c_void_p(vector.data_ptr())
      self._must(self._nccl.ncclAllReduce(address, address, ctypes.c_size_t(elements), FLOAT32, SUM, self._comm, stream))
      self._device.sync()
      seconds += time.monotonic() - begin_s
      wrong += int((vector != self._world * base + pattern.shift_sum(self._world, self._call)).sum())
      self._call += 1
    return {"wrong": wrong, "mean_s": seconds / count}

  def end(self) -> None:
    self._must(self._nccl.ncclCommDestroy(self._comm))
