"""What torchrun starts in the case `wheel`: sums of known numbers for some seconds, each element checked. Knows nothing of R2CC."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist


def main() -> int:
  seconds = float(sys.argv[1])
  torch.cuda.set_device(0)
  dist.init_process_group("nccl")
  rank, world = dist.get_rank(), dist.get_world_size()
  x = torch.empty(8 << 20, dtype=torch.int32, device="cuda")
  base = torch.arange(x.numel(), dtype=torch.int32, device="cuda") % 1000
  iterations, longest_s, wrong, goes_on = 0, 0.0, torch.zeros((), dtype=torch.int64, device="cuda"), True
  begin_s = last_s = time.monotonic()
  after_half = 0
  while goes_on:
    torch.add(base, rank + iterations, out=x)
    dist.all_reduce(x)
    wrong += (x != world * (base + iterations) + world * (world - 1) // 2).sum()
    # Rank 0 decides for all, so that no rank waits for a sum that another one does not begin.
    stop = torch.tensor([time.monotonic() - begin_s >= seconds if rank == 0 else 0], dtype=torch.int32, device="cuda")
    dist.broadcast(stop, 0)
    goes_on = not stop.item()
    now_s = time.monotonic()
    if iterations == 0:
      begin_s = now_s
      if rank == 0:
        print(json.dumps({"began": os.getpid()}), flush=True)
    else:
      longest_s = max(longest_s, now_s - last_s)
    after_half += now_s - begin_s > seconds / 2
    last_s, iterations = now_s, iterations + 1
  dist.all_reduce(wrong)
  if rank == 0:
    print(json.dumps({"iterations": iterations, "after_cut": after_half, "wrong": int(wrong), "longest_ms": round(1e3 * longest_s, 1)}),
          flush=True)
  dist.destroy_process_group()
  return 0


if __name__ == "__main__":
  sys.exit(main())
