"""A rank's part in data-parallel training: PyTorch's DDP, as users write it, with every step timed and every loss kept."""

import contextlib
import hashlib
import statistics
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.gpu import model
from tests.gpu.control import RankEnd
from tests.gpu.device import Device

WARM_STEPS = 3
# What is moved at a pause, so that the flows find out what has changed before the clock runs again.
SETTLE_BYTES, SETTLE_ROUNDS = 64 << 20, 3


class Trainer:
  """One run from fresh weights. A step adds up the gradients of `rounds` batches of `sequences` each, and sums them over all ranks once.
  `shards`: whose tokens each rank has (default: its own), so that the same sums are added in another order of ranks.
  `bucket_mib`: DDP's (default: DDP's own)."""

  def __init__(self, device: Device, orchestrator: RankEnd, seed: int, steps: int, sequences: int, rounds: int,
               tiny: bool, pauses: list[int] | None = None, shards: list[int] | None = None, bucket_mib: int | None = None):
    self._device, self._orchestrator, self._steps, self._rounds = device, orchestrator, steps, rounds
    self._pauses = set(pauses or [])
    self._shape = model.TINY if tiny else model.FULL
    self._rank = dist.get_rank()
    self._word = torch.zeros(1, device=device.torch)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    net = model.Gpt(self._shape).to(device.torch)
    self._model = DistributedDataParallel(net, device_ids=[device.torch.index] if device.kind == "cuda" else None,
                                          gradient_as_bucket_view=True, **({"bucket_cap_mb": bucket_mib} if bucket_mib else {}))
    self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=3e-4, foreach=True)
    # Each rank has tokens of its own.
    shard = self._rank if shards is None else shards[self._rank]
    generator = torch.Generator(device=device.torch).manual_seed(1000 * seed + shard)
    sizes = (8, sequences, self._shape.context + 1)
    self._tokens = torch.randint(self._shape.vocabulary, sizes, generator=generator, device=device.torch)
    self._tokens_per_step = sequences * rounds * self._shape.context * dist.get_world_size()

  def _step(self, step: int, synced: bool = True) -> float:
    losses = []
    for number in range(self._rounds):
      batch = self._tokens[(step * self._rounds + number) % len(self._tokens)]
      with contextlib.nullcontext() if synced and number == self._rounds - 1 else self._model.no_sync():
        with torch.autocast(self._device.kind, dtype=torch.bfloat16, enabled=self._device.kind == "cuda"):
          loss = self._model(batch[:, :-1], batch[:, 1:]) / self._rounds
        loss.backward()
      losses.append(loss.detach())
    self._optimizer.step()
    self._optimizer.zero_grad(set_to_none=True)
    return sum(losses).item()

  def _wait(self) -> None:
    """A step boundary that all ranks share."""
    dist.all_reduce(self._word)
    self._device.sync()

  def _pause(self, step: int) -> None:
    """The orchestrator changes the network; between its words traffic settles, and none of it counts."""
    self._wait()
    if self._rank == 0:
      self._orchestrator.send({"paused": step})
    ballast = torch.zeros(SETTLE_BYTES // 4 if self._device.kind == "cuda" else 1024, device=self._device.torch)
    while True:
      word = self._orchestrator.receive()["do"]
      if word == "resume":
        break
      for _ in range(SETTLE_ROUNDS):
        dist.all_reduce(ballast)
      self._wait()
      if self._rank == 0:
        self._orchestrator.send({"settled": step})
    del ballast
    self._wait()

  def run(self) -> dict[str, Any]:
    """Rank 0 reports the begin and end of each step, and all their losses at the end."""
    losses = []
    for step in range(WARM_STEPS):  # DDP orders its buckets anew after the first one
      losses.append(self._step(step))
    self._wait()
    for step in range(self._steps):
      if step in self._pauses:
        self._pause(step)
      begin_ns = time.monotonic_ns()
      losses.append(self._step(WARM_STEPS + step))
      if self._rank == 0:
        self._orchestrator.send({"rows": [(step, begin_ns, time.monotonic_ns())], "wrong": 0})
    self._wait()
    digest = hashlib.sha256()
    for parameter in self._model.parameters():
      digest.update(parameter.detach().cpu().numpy().tobytes())
    return {"losses": [loss.hex() for loss in losses], "first": losses[0], "last": losses[-1], "weights": digest.hexdigest()[:16],
            "tokens_per_step": self._tokens_per_step}

  def calibrate(self) -> dict[str, Any]:
    """How long a step is with gradients summed over all ranks, and how long without: medians of interleaved pairs."""
    with_sync, without = [], []
    for step in range(WARM_STEPS):
      self._step(step)
    for step in range(self._steps):
      for times, synced in ((with_sync, True), (without, False)):
        self._wait()
        begin_s = time.monotonic()
        self._step(step, synced)
        self._device.sync()
        times.append(time.monotonic() - begin_s)
    parameters = sum(parameter.numel() for parameter in self._model.parameters())
    return {"with_sync_s": statistics.median(with_sync), "without_sync_s": statistics.median(without), "parameters": parameters,
            "tokens_per_step": self._tokens_per_step}
