"""Where the ranks of a job run and what their environment says. Pure."""

import dataclasses
import random
from typing import Sequence

# Never the cards' multicast, and no multi-node NVLink: emulated nodes share one machine.
_ALWAYS = {"NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0", "NCCL_IB_DISABLE": "1", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
           "NVSHMEM_DISABLE_NVLS": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
           "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}
# NCCL_NSOCKS_PERTHREAD, NCCL_SOCKET_NTHREADS; the first is NCCL's own choice here.
SOCKET_TUNINGS = ((1, 1), (2, 1), (4, 1), (2, 4), (4, 4))


@dataclasses.dataclass(frozen=True)
class Network:
  """Which transport NCCL gets."""
  kind: str  # "r2cc" or "socket"
  sockets: int = 1  # NCCL Socket's: of each thread
  threads: int = 1

  @property
  def name(self) -> str:
    return self.kind if (self.sockets, self.threads) == (1, 1) else f"{self.kind}-{self.sockets}x{self.threads}"


R2CC, SOCKET = Network("r2cc"), Network("socket")


@dataclasses.dataclass(frozen=True)
class Placement:
  """`per_node` ranks in each of `nodes` namespaces, on `gpus` cards; two nodes may share a card, two ranks of a node may not."""
  nodes: int
  gpus: int
  per_node: int = 1

  def __post_init__(self) -> None:
    if self.per_node > max(1, self.gpus):
      raise ValueError(f"{self.per_node} ranks of one node need as many GPUs, and there are {self.gpus}")

  @property
  def world(self) -> int:
    return self.nodes * self.per_node

  def node(self, rank: int) -> int:
    return rank // self.per_node

  def gpu(self, rank: int) -> int:
    return rank % max(1, self.gpus)


def dealt_processors(cores: Sequence[Sequence[int]], nodes: int, deal: int) -> list[set[int]]:
  """Each node's: whole cores, as many for each; another `deal` gives others."""
  each = len(cores) // nodes
  if each == 0:
    raise ValueError(f"{nodes} nodes want a core each, and there are {len(cores)}")
  mixed = random.Random(deal).sample(list(cores), len(cores))
  return [{processor for core in mixed[node * each:(node + 1) * each] for processor in core} for node in range(nodes)]


def rank_environment(network: Network, placement: Placement, rank: int, rails: str, management: str) -> dict[str, str]:
  """Of NCCL and the plugin; `rails`: interfaces, comma separated."""
  node = placement.node(rank)
  result = _ALWAYS | {"NCCL_HOSTID": f"node{node}", "GLOO_SOCKET_IFNAME": management, "TP_SOCKET_IFNAME": management}
  if placement.per_node == 1:
    result |= {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
  if network.kind == "socket":
    result |= {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_SOCKET_IFNAME": "=" + rails}
    if (network.sockets, network.threads) != (1, 1):
      result |= {"NCCL_NSOCKS_PERTHREAD": str(network.sockets), "NCCL_SOCKET_NTHREADS": str(network.threads)}
    return result
  return result | {"NCCL_SOCKET_IFNAME": "=" + management, "NCCL_NET": "R2CC", "NCCL_NET_PLUGIN": "r2cc", "R2CC_RAILS": rails,
                   "R2CC_OOB_IFNAME": management, "R2CC_NODE": f"n{node}", "R2CC_ATTACH": "none"}
