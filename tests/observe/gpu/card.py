"""The GPU that cases use. With R2CC_TAPS_DEVICE=cpu steps run without one and without graphs: a try of a case's own code, and no result."""

import gc
import json
import os
import subprocess
import sys

import torch

DEVICE = os.environ.get("R2CC_TAPS_DEVICE", "cuda")
ON_GPU = DEVICE == "cuda"
ATTACH = "cuda" if ON_GPU else "host"


class Eager:
  """In place of a captured graph."""

  def __init__(self, step):
    self.replay = step


def warm(step, times):
  """On a stream of its own, as a capture wants it."""
  if not ON_GPU:
    for _ in range(times):
      step()
    return
  side = torch.cuda.Stream()
  side.wait_stream(torch.cuda.current_stream())
  with torch.cuda.stream(side):
    for _ in range(times):
      step()
  torch.cuda.current_stream().wait_stream(side)


def capture(step, warm_steps=2):
  """After steps without a capture: the first of them is checked, those after it are taken."""
  warm(step, warm_steps)
  if not ON_GPU:
    return Eager(step)
  graph = torch.cuda.CUDAGraph()
  with torch.cuda.graph(graph):
    step()
  synchronize()
  return graph


def synchronize():
  if ON_GPU:
    torch.cuda.synchronize()


def forget():
  gc.collect()
  if ON_GPU:
    torch.cuda.empty_cache()


def start(program, *arguments, **options):
  """Another process of this program; it speaks lines."""
  return subprocess.Popen([sys.executable, program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


def line_of(process):
  """Its next line that is JSON, as an object."""
  line = process.stdout.readline()
  if not line:
    raise RuntimeError(f"process {process.pid} ended with {process.wait()} and no result")
  return json.loads(line)


def end(*processes):
  for process in processes:
    if process.poll() is None:
      process.kill()
    process.wait()


def counts_are_equal(read, produced):
  """A reader's counts next to the producer's, by cause."""
  return all(read[key] == produced[key] for key in ("steps", "dropped_device", "dropped_host", "unwanted")) and (
      read["records"] + read["missed"] == produced["records"])
