"""A rank's part in tensor-parallel decoding: tokens until rank 0 is told to stop, each with its time."""

import hashlib
import time
from typing import Any, Callable

import torch
import torch.distributed as dist

from tests.gpu import model
from tests.gpu.control import RankEnd
from tests.gpu.device import Device

# All ranks ask whether to stop only so often: it is one more collective.
TOKENS_PER_ROUND = 32


def decode(device: Device, orchestrator: RankEnd, agree: Callable[[bool], bool], seed: int, batch: int, tiny: bool) -> dict[str, Any]:
  """Sequences of the whole context, one behind the other; their tokens are a digest that no fault may change."""
  shape = model.TINY if tiny else model.FULL
  decoder = model.SplitDecoder(shape, dist.get_rank(), dist.get_world_size(), batch, device.torch, seed, dist.all_reduce)
  digests, tokens = [], 0
  with torch.no_grad():
    while True:
      ids = torch.arange(batch, device=device.torch) * 17 % shape.vocabulary
      reported, hashed = [], hashlib.sha256()
      for position in range(shape.context):
        if position % TOKENS_PER_ROUND == 0 and agree(dist.get_rank() == 0 and orchestrator.pending()):
          return {"tokens": tokens, "sequences": digests}
        begin_ns = time.monotonic_ns()
        ids = decoder.step(ids, position)
        values = ids.tolist()  # waits for the GPU, as whoever sends tokens to a user must
        reported.append((tokens, begin_ns, time.monotonic_ns()))
        hashed.update(repr(values).encode())
        tokens += 1
        if position % TOKENS_PER_ROUND == TOKENS_PER_ROUND - 1:
          orchestrator.send({"rows": reported, "wrong": 0})
          reported = []
      digests.append(hashed.hexdigest()[:16])
