"""Collectives whose every element is known beforehand: prepare once, then fill, run and check for each iteration."""

from typing import Any

import torch
import torch.distributed as dist

from tests.gpu import values
from tests.gpu.device import DTYPES, Device

# Sums in which every partial sum is exact.
_WORK = {"float64": torch.float64} | dict.fromkeys(("int64", "int32", "int8", "uint8", "bool"), torch.int64)


def elements(size_bytes: int, dtype: str, world: int) -> int:
  """Of an operation of about that size; at least one for each rank."""
  count = max(world, size_bytes // values.SIZE_BYTES[dtype])
  return count // world * world


class Collective:
  """One operation of one size and type in one process group."""

  def __init__(self, device: Device, name: str, size_bytes: int, dtype: str = "float32", group: Any = None, checked: bool = True):
    self.name, self._dtype, self._device, self._group = name, dtype, device, group
    self._rank, self._world = dist.get_rank(group), dist.get_world_size(group)
    self._count = elements(size_bytes, dtype, self._world)
    self._part = self._count // self._world
    self.size_bytes = self._count * values.SIZE_BYTES[dtype]
    self._pattern = values.pattern(dtype, self._world)
    self._work = _WORK.get(dtype, torch.float32)
    kind = DTYPES[dtype]
    small_in, small_out = name == "all_gather", name == "reduce_scatter"
    self._input = torch.zeros(self._part if small_in else self._count, dtype=kind, device=device.torch)
    in_place = name in ("all_reduce", "broadcast", "reduce")
    self._output = self._input if in_place else torch.zeros(self._part if small_out else self._count, dtype=kind, device=device.torch)
    self._base = self._pattern.base(torch.arange(self._count, dtype=torch.int64, device=device.torch)).to(self._work) if checked else None
    self._peers = [dist.get_global_rank(group, rank) if group is not None else rank for rank in range(self._world)]

  @property
  def reduces(self) -> bool:
    return self.name in ("all_reduce", "reduce_scatter", "reduce")

  def is_checkable(self) -> bool:
    return not self.reduces or self._dtype == "bool" or values.sum_is_exact(self._dtype, self._world)

  def _root(self, iteration: int) -> int:
    return iteration % self._world

  def fill(self, iteration: int) -> None:
    """This rank's contribution; old results are wiped, so that none passes for a new one."""
    if self._output is not self._input:
      self._output.zero_()
    self._input.copy_(self._base[:self._input.numel()] + self._pattern.shift(self._rank, iteration))

  def run(self, iteration: int = 0, wait: bool = True) -> Any:
    """The collective alone; without `wait` its handle."""
    group, root = self._group, self._peers[self._root(iteration)]
    if self.name == "all_reduce":
      work = dist.all_reduce(self._input, group=group, async_op=not wait)
    elif self.name == "all_gather":
      if self._device.kind == "cuda":
        work = dist.all_gather_into_tensor(self._output, self._input, group=group, async_op=not wait)
      else:
        work = dist.all_gather(list(self._output.chunk(self._world)), self._input, group=group, async_op=not wait)
    elif self.name == "reduce_scatter":
      work = dist.reduce_scatter_tensor(self._output, self._input, group=group, async_op=not wait)
    elif self.name == "broadcast":
      work = dist.broadcast(self._input, root, group=group, async_op=not wait)
    elif self.name == "reduce":
      work = dist.reduce(self._input, root, group=group, async_op=not wait)
    elif self.name == "all_to_all":
      work = dist.all_to_all_single(self._output, self._input, group=group, async_op=not wait)
    elif self.name == "sendrecv":
      nearby = [dist.P2POp(dist.isend, self._input, self._peers[(self._rank + 1) % self._world], group),
                dist.P2POp(dist.irecv, self._output, self._peers[(self._rank - 1) % self._world], group)]
      work = dist.batch_isend_irecv(nearby)
      if wait:
        for one in work:
          one.wait()
    else:
      raise ValueError(f"there is no collective {self.name}")
    return work

  def check(self, iteration: int) -> int:
    """How many elements are wrong."""
    got = self._output.to(self._work)
    if self.name == "reduce" and self._rank != self._root(iteration):
      return 0
    pattern, base = self._pattern, self._base
    if self.reduces:
      if self.name == "reduce_scatter":
        base = base[self._rank * self._part:(self._rank + 1) * self._part]
      expected = base if self._dtype == "bool" else self._world * base + pattern.shift_sum(self._world, iteration)
    elif self.name == "broadcast":
      expected = base + pattern.shift(self._root(iteration), iteration)
    elif self.name == "sendrecv":
      expected = base + pattern.shift((self._rank - 1) % self._world, iteration)
    else:  # a part from each rank
      own = base[:self._part] if self.name == "all_gather" else base[self._rank * self._part:(self._rank + 1) * self._part]
      expected = torch.cat([own + pattern.shift(rank, iteration) for rank in range(self._world)])
    return int((got != expected).sum())


class GraphedAllReduce(Collective):
  """An all_reduce that is captured once in a CUDA graph and replayed ever after."""

  def __init__(self, device: Device, size_bytes: int):
    super().__init__(device, "all_reduce", size_bytes)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
      for _ in range(3):
        dist.all_reduce(self._input)
    torch.cuda.current_stream().wait_stream(side)
    device.sync()
    self._graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
      dist.all_reduce(self._input)
    device.sync()

  def run(self, iteration: int = 0, wait: bool = True) -> Any:
    self._graph.replay()


class Groups:
  """Data, tensor and pipeline parallel traffic at once, each in process groups of its own, with the whole world's beside it."""

  name = "groups"

  def __init__(self, device: Device, size_bytes: int):
    rank, world = dist.get_rank(), dist.get_world_size()
    if world % 2:
      raise ValueError(f"groups need an even number of ranks, and there are {world}")
    halves = [[rank for rank in range(world) if rank // (world // 2) == half] for half in (0, 1)]
    pairs = [[low, low + world // 2] for low in range(world // 2)]
    tensor = [dist.new_group(ranks) for ranks in halves][rank // (world // 2)]
    data = [dist.new_group(ranks) for ranks in pairs][rank % (world // 2)]
    pipeline = [dist.new_group(ranks) for ranks in pairs][rank % (world // 2)]
    narrow = "bfloat16" if device.kind == "cuda" else "float32"  # gloo adds up no bfloat16
    self._parts = [Collective(device, "all_reduce", size_bytes // 4, narrow, tensor)]
    if device.kind == "cuda":
      self._parts.append(Collective(device, "reduce_scatter", size_bytes, "float32", data))
    self._parts += [Collective(device, "all_gather", size_bytes // 2, "float32", data),
                    Collective(device, "sendrecv", size_bytes // 4, "float16", pipeline), Collective(device, "all_reduce", size_bytes)]
    self.size_bytes = sum(part.size_bytes for part in self._parts)

  def fill(self, iteration: int) -> None:
    for part in self._parts:
      part.fill(iteration)

  def run(self, iteration: int = 0) -> None:
    handles: list[Any] = []
    for part in self._parts:
      work = part.run(iteration, wait=False)
      handles += work if isinstance(work, list) else [work]
    for handle in handles:
      handle.wait()

  def check(self, iteration: int) -> int:
    return sum(part.check(iteration) for part in self._parts)


class Seats:
  """What a seat must bear: three communicators that reduce eagerly, and a graph that was captured on the first one."""

  name = "seats"

  def __init__(self, device: Device, size_bytes: int):
    self._parts = [Collective(device, "all_reduce", size_bytes),
                   Collective(device, "all_reduce", size_bytes, "bfloat16" if device.kind == "cuda" else "float32", dist.new_group()),
                   Collective(device, "all_reduce", size_bytes, "float32", dist.new_group())]
    if device.kind == "cuda":
      self._parts.append(GraphedAllReduce(device, size_bytes // 4))
    self.size_bytes = sum(part.size_bytes for part in self._parts)

  def fill(self, iteration: int) -> None:
    for part in self._parts:
      part.fill(iteration)

  def run(self, iteration: int = 0) -> None:
    for part in self._parts:
      part.run(iteration)

  def check(self, iteration: int) -> int:
    return sum(part.check(iteration) for part in self._parts)


def make(device: Device, name: str, size_bytes: int, dtype: str = "float32") -> Any:
  if name == "own_reduce_scatter":  # by a communicator that nothing else uses
    return Collective(device, "reduce_scatter" if device.kind == "cuda" else "all_reduce", size_bytes, dtype, dist.new_group())
  if name == "groups":
    return Groups(device, size_bytes)
  if name == "seats":
    return Seats(device, size_bytes)
  if name == "graph":
    return GraphedAllReduce(device, size_bytes)
  return Collective(device, name, size_bytes, dtype)
