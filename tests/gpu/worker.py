"""One rank: joins the job, then does what it is told until it is told to quit. Started by job.py; needs PyTorch.

All ranks are told the same in the same order. Whatever goes wrong is said to the orchestrator and ends the process, as it would end a
training job; an operation that NCCL or PyTorch refuses before it begins is no error where the command says so.
"""

import argparse
import os
import sys
import time
import traceback
from typing import Any

import torch
import torch.distributed as dist

from tests.gpu import collectives
from tests.gpu.control import RankEnd
from tests.gpu.decoding import decode
from tests.gpu.device import DTYPES, Device
from tests.gpu.opened import OpenedNccl
from tests.gpu.training import Trainer

FLUSH_S = 0.05
WARM_UP_BYTES = 1 << 20


def parse_arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="rank")
  for name in ("--control", "--rendezvous"):
    parser.add_argument(name, required=True)
  for name in ("--rank", "--world", "--gpu"):
    parser.add_argument(name, type=int, required=True)
  parser.add_argument("--timeout-s", type=float, required=True)
  parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
  return parser.parse_args(sys.argv[2:])


class Worker:
  """The commands, by name."""

  def __init__(self, options: argparse.Namespace, orchestrator: RankEnd):
    self._rank, self._orchestrator = options.rank, orchestrator
    self._device = Device(options.device, options.gpu)
    orchestrator.send({"event": "imported"})
    self._device.join(options.rendezvous, options.rank, options.world, options.timeout_s)
    warm_up = collectives.Collective(self._device, "all_reduce", WARM_UP_BYTES)
    warm_up.fill(1)
    warm_up.run(1)
    self._device.sync()
    self._flag = torch.zeros(1, device=self._device.torch)
    self._opened: OpenedNccl | None = None
    self._measured: dict[tuple[str, int], collectives.Collective] = {}
    orchestrator.send({"event": "ready", "wrong": warm_up.check(1), **self._device.versions()})

  def serve(self) -> None:
    while True:
      command = self._orchestrator.receive()
      name = command.pop("do")
      if name == "quit":
        if self._opened is not None:
          self._opened.end()
        break
      if name == "stop":  # of a loop that has ended by itself
        continue
      self._orchestrator.send({"done": name, **getattr(self, "do_" + name)(**command)})
    dist.destroy_process_group()

  def _agree(self, mine: bool) -> bool:
    """Whether any rank says yes."""
    self._flag.fill_(float(mine))
    dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
    return bool(self._flag.item())

  def do_loop(self, operation: str, size_bytes: int) -> dict[str, Any]:
    """Until rank 0 is told to stop; each iteration is checked and reported."""
    work = collectives.make(self._device, operation, size_bytes)
    rows, wrong, iteration, flushed_s = [], 0, 0, time.monotonic()
    while True:
      work.fill(iteration)
      if self._agree(self._rank == 0 and self._orchestrator.pending()):
        break
      begin_ns = time.monotonic_ns()
      work.run(iteration)
      self._device.sync()
      end_ns = time.monotonic_ns()
      wrong += work.check(iteration)
      rows.append((iteration, begin_ns, end_ns))
      iteration += 1
      if time.monotonic() - flushed_s > FLUSH_S:
        self._orchestrator.send({"rows": rows, "wrong": wrong})
        rows, flushed_s = [], time.monotonic()
    self._orchestrator.send({"rows": rows, "wrong": wrong})
    return {"iterations": iteration, "wrong": wrong, "size_bytes": work.size_bytes}

  def do_check(self, operations: list[str], dtypes: list[str], sizes: list[int], iterations: int) -> dict[str, Any]:
    """All combinations; what PyTorch or NCCL refuses is listed with the reason."""
    wrong, refused, passed = {}, {}, []
    for operation in operations:
      for dtype in dtypes:
        if dtype not in DTYPES:
          refused[f"{operation}/{dtype}"] = "this PyTorch has no such type"
          continue
        bad = 0
        try:
          for size_bytes in sizes:
            work = collectives.Collective(self._device, operation, size_bytes, dtype)
            if not work.is_checkable():
              raise ValueError(f"too narrow for an exact sum of {dist.get_world_size()} ranks")
            for iteration in range(iterations):
              work.fill(iteration)
              work.run(iteration)
              self._device.sync()
              bad += work.check(iteration)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
          refused[f"{operation}/{dtype}"] = " ".join(str(error).split())[:160]
          continue
        (wrong.__setitem__(f"{operation}/{dtype}", bad) if bad else passed.append(f"{operation}/{dtype}"))
    return {"wrong": wrong, "refused": refused, "passed": passed}

  def do_measure(self, operation: str, items: list[list[int]]) -> dict[str, Any]:
    """Of items of bytes, first iterations and iterations: mean times of the first ones after whatever was before, and of the others,
    queued one behind the other as nccl-tests does; a block with nothing beside it."""
    first_seconds, seconds = [], []
    for size_bytes, first, iterations in items:
      key = (operation, size_bytes)
      if key not in self._measured:
        self._measured[key] = collectives.Collective(self._device, operation, size_bytes, checked=False)
        self._measured[key].run()
        self._device.sync()
      work = self._measured[key]
      first_seconds.append(self._mean_s(work, first) if first else None)
      seconds.append(self._mean_s(work, iterations))
    return {"first_seconds": first_seconds, "seconds": seconds}

  def _mean_s(self, work: collectives.Collective, iterations: int) -> float:
    self._agree(False)
    begin_ns = time.monotonic_ns()
    for _ in range(iterations):
      work.run()
    self._device.sync()
    return (time.monotonic_ns() - begin_ns) / 1e9 / iterations

  def do_start(self, size_bytes: int) -> dict[str, Any]:
    """Another communicator of all ranks, from nothing to its first all_reduce, and its end."""
    begin_ns = time.monotonic_ns()
    group = dist.new_group()
    work = collectives.Collective(self._device, "all_reduce", size_bytes, group=group)
    work.fill(1)
    work.run(1)
    self._device.sync()
    seconds, wrong = (time.monotonic_ns() - begin_ns) / 1e9, work.check(1)
    dist.destroy_process_group(group)
    return {"seconds": seconds, "wrong": wrong}

  def do_reduce_opened(self, size_bytes: int, count: int) -> dict[str, Any]:
    """By a communicator that PyTorch does not know, of NCCL as this program opens it."""
    if self._opened is None:
      self._opened = OpenedNccl(self._device)
    return self._opened.reduce(size_bytes, count)

  def do_train(self, **command: Any) -> dict[str, Any]:
    return Trainer(self._device, self._orchestrator, **command).run()

  def do_calibrate(self, steps: int, **command: Any) -> dict[str, Any]:
    return Trainer(self._device, self._orchestrator, steps=steps, **command).calibrate()

  def do_decode(self, **command: Any) -> dict[str, Any]:
    return decode(self._device, self._orchestrator, self._agree, **command)


def main() -> int:
  options = parse_arguments()
  orchestrator = RankEnd(options.control, options.rank)
  try:
    Worker(options, orchestrator).serve()
  except EOFError:
    return 1
  except Exception as error:  # pylint: disable=broad-except
    traceback.print_exc()
    sys.stderr.flush()
    try:
      orchestrator.send({"error": " ".join(f"{type(error).__name__}: {error}".split())[:400]})
    except OSError:
      pass
    os._exit(1)  # NCCL's threads may be stuck in what failed
  return 0
