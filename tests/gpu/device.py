"""What a rank computes on and talks through: a GPU with NCCL, or the CPU with gloo to try these programs without one."""

import datetime
import os

import torch
import torch.distributed as dist

# torch's element types by the names of values.py; what this PyTorch does not have is left out.
DTYPES = {name: getattr(torch, name) for name in ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64",
                                                  "float8_e4m3fn", "float8_e5m2", "bool") if hasattr(torch, name)}


class Device:
  """Of this process."""

  def __init__(self, kind: str, index: int):
    self.kind = kind
    self.torch = torch.device(f"cuda:{index}" if kind == "cuda" else "cpu")
    if kind == "cuda":
      torch.cuda.set_device(index)
    else:
      torch.set_num_threads(1)

  @property
  def backend(self) -> str:
    return "nccl" if self.kind == "cuda" else "gloo"

  def sync(self) -> None:
    if self.kind == "cuda":
      torch.cuda.synchronize()

  def join(self, rendezvous: str, rank: int, world: int, timeout_s: float) -> None:
    dist.init_process_group(self.backend, init_method=f"file://{rendezvous}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=timeout_s))

  def versions(self) -> dict[str, str]:
    result = {"torch": torch.__version__, "preload": os.environ.get("LD_PRELOAD", "")}
    if self.kind == "cuda":
      result |= {"nccl": ".".join(map(str, torch.cuda.nccl.version())), "cuda": str(torch.version.cuda),
                 "gpu": torch.cuda.get_device_name(self.torch)}
    return result
