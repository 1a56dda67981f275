"""The cases, their order, and what each asks of the machine. No PyTorch here: --list works anywhere."""

import dataclasses
from typing import Callable

from tests.gpu import (case_collnet, case_collnet_agreed, case_faults, case_healthy, case_inference, case_loads, case_profiler, case_seat,
                       case_seat_training, case_training, case_wheel)
from tests.gpu.bench import Context


@dataclasses.dataclass(frozen=True)
class Case:
  """`act(context, name, daemons)` prints what it finds. Seconds are a rough guess for 4 nodes."""
  name: str
  what: str
  seconds: int
  quick_seconds: int
  act: Callable[[Context, str, bool], None]
  daemons: bool = False


_FAULTS = (
    Case("cut", "a rail of one node goes down, 20 times in one job; busbw before and after", 100, 35, case_faults.cut),
    Case("both-ends", "both ends of a link at once: the same rail, then different rails", 30, 20, case_faults.both_ends),
    Case("double", "a rail, and 50 ms later the one that took over", 45, 15, case_faults.double),
    Case("silence", "a port leaves its bridge: no event anywhere", 45, 15, case_faults.silence),
    Case("flap", "a rail goes down and up 20 times in 10 s", 35, 15, case_faults.flap),
    Case("blackout", "all rails of a node are down for 3 s", 20, 15, case_faults.blackout),
    Case("restore", "how soon a repaired rail carries its share again", 45, 15, case_faults.restore),
    Case("gray", "a rail is shaped to a quarter of its rate", 25, 15, case_faults.gray),
    Case("cut-others", "cuts under all_gather, reduce_scatter and sendrecv", 130, 40, case_faults.cut_others),
    Case("graphs", "an all_reduce captured in a CUDA graph before the fault, replayed through it", 45, 20, case_faults.graphs),
    Case("dead-at-start", "a rail is down before the job begins", 70, 35, case_faults.dead_at_start),
)
_WITH_DAEMON = ("cut", "silence", "gray", "dead-at-start")

CASES = (
    Case("loads", "both NCCLs load the plugin: all collectives, types, Ring and Tree, LL, LL128 and Simple; data checked", 120, 120,
         case_loads.loads),
    Case("healthy", "against NCCL Socket as it is and tuned: interleaved pairs, 8 B to 256 MiB", 205, 60,
         case_healthy.healthy),
    Case("unshaped", "the same on rails without a rate", 200, 50, case_healthy.unshaped),
    *_FAULTS,
    *(dataclasses.replace(case, name=case.name + "+daemon", what=case.what + ", with an r2ccd on each node", daemons=True)
      for case in _FAULTS if case.name in _WITH_DAEMON),
    Case("groups", "data, tensor and pipeline parallel groups at once over 4 nodes, with cuts", 60, 30, case_faults.groups),
    Case("nodes8", "8 nodes, two on a GPU where there are 4, with cuts", 60, 35, case_faults.nodes8),
    Case("two-by-two", "2 nodes of 2 GPUs each, NVLink inside, with cuts", 90, 50, case_faults.two_by_two),
    Case("collnet", "the degraded AllReduce against rings: healthy, a rail of one node lost, half of them lost", 150, 60,
         case_collnet.collnet),
    Case("collnet-starts", "communicators with CollNet, 60 of them, to the first sum; at every tenth a rail is lost meanwhile", 150, 60,
         case_collnet.starts),
    Case("collnet-agreed", "CollNet by agreement over the ring: healthy, a rail of one node lost, half of them lost, and back", 200, 110,
         case_collnet_agreed.agreed),
    Case("seat", "libr2cc-nccl.so on over off, 4 and 8 nodes or --nodes: rails of one node lost, at 8 of two", 420, 160, case_seat.seat),
    Case("seat-counts", "the same with 2, 3, 5 and 7 nodes; two decline", 170, 170, case_seat.counts),
    Case("seat+daemon", "the same with an r2ccd on each node; r2ccctl jobs has the switch", 420, 160, case_seat.seat, daemons=True),
    Case("seat-two-gpus", "the same with 4 nodes of 2 GPUs each, NVLink inside; two ranks on a card where there are 4", 200, 80,
         case_seat.two_gpus),
    Case("seat-mixed", "a rank without libr2cc-nccl.so, or with another R2CC_SEAT_EVERY: the job goes on as NCCL alone", 90, 90,
         case_seat.mixed),
    Case("seat-ddp", "DDP on 4 nodes, half of one's rails lost and repaired: time of a step over Balance, loss curves", 170, 170,
         case_seat_training.training),
    Case("seat-audit", "a program that opens NCCL itself, libr2cc-nccl.so in LD_AUDIT: to a seat and back", 70, 70, case_seat.audit),
    Case("seat-healthy", "libr2cc-nccl.so on over off with all rails, 40 pairs, 8 B to 256 MiB; and off over off", 260, 75,
         case_seat.healthy),
    Case("seat-switches", "to a seat and back, 60 times under load: three communicators and a CUDA graph", 200, 110, case_seat.switches),
    Case("profiler", "libnccl-profiler-r2cc.so: cuts name the rank, communicator and collective; its cost at 8 B and 64 MiB", 260, 150,
         case_profiler.profiler),
    Case("socket-cut", "NCCL Socket as control: one cut", 90, 90, case_faults.socket_control),
    Case("socket-silence", "NCCL Socket as control: one silenced rail", 90, 90, case_faults.socket_control),
    Case("training", "GPT of 124 M parameters, DDP on 4 nodes: undisturbed, three faults and a repair, paired control", 600, 240,
         case_training.training),
    Case("wheel", "the wheel in a fresh virtual environment: python -m r2cc run -- torchrun, 2 nodes, a cut", 60, 60, case_wheel.wheel),
    Case("inference", "tensor-parallel decoding: time per token healthy, at a fault, degraded", 90, 40, case_inference.inference),
)


def listing(quick: bool) -> str:
  width = max(len(case.name) for case in CASES)
  return "\n".join(f"{case.name:{width}}  {case.quick_seconds if quick else case.seconds:4d} s  {case.what}" for case in CASES)


def chosen(names: list[str]) -> list[Case]:
  """In the order of the command line; ValueError names what there is not."""
  known = {case.name: case for case in CASES}
  if unknown := [name for name in names if name not in known]:
    raise ValueError(f"there is no case {', '.join(unknown)}; --list shows them")
  return [known[name] for name in names]
