"""What taps-lean compares taps with, and others that want the same link."""

import pathlib
import threading
import time

import torch


class Pinned:
  """Outputs that are kept on the GPU, and copied to pinned memory behind each step. Nobody reads them."""

  def __init__(self, model, layers, capture):
    kept = []
    hooks = [layer.register_forward_hook(lambda module, given, out: kept.append(out[0] if isinstance(out, tuple) else out))
             for layer in layers]
    try:
      self.graph = capture(model, kept.clear)
    finally:
      for hook in hooks:
        hook.remove()
    self.kept = list(kept)
    self.host = [torch.empty_like(tensor, device="cpu", pin_memory=True) for tensor in self.kept]

  def replay(self):
    self.graph.replay()
    for to, tensor in zip(self.host, self.kept):
      to.copy_(tensor, non_blocking=True)


class Eager:
  """The model without a graph; with `to_host` hooks that copy each output at its point, and wait."""

  def __init__(self, model, layers, to_host):
    self.model, self.layers, self.to_host, self.hooks = model, layers, to_host, []

  def replay(self):
    hooks = [layer.register_forward_hook(lambda module, given, out: (out[0] if isinstance(out, tuple) else out).cpu() is None)
             for layer in self.layers] if self.to_host else []
    try:
      self.model()
    finally:
      for hook in hooks:
        hook.remove()


class Link:
  """A thread that copies from the GPU to pinned memory without a pause, on a stream of its own."""
  PIECE_BYTES, PIECES = 16 << 20, 4

  def __init__(self):
    self.source = torch.zeros(self.PIECE_BYTES, dtype=torch.uint8, device="cuda")
    self.target = torch.zeros(self.PIECE_BYTES, dtype=torch.uint8, pin_memory=True)
    self.bytes, self.ends, self.marked = 0, False, (0, time.monotonic())
    self.thread = threading.Thread(target=self.copy)
    self.thread.start()

  def copy(self):
    stream, events = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
      while not self.ends:
        self.target.copy_(self.source, non_blocking=True)
        events.append(torch.cuda.Event(blocking=True))
        events[-1].record()
        if len(events) > self.PIECES:
          events.pop(0).synchronize()
          self.bytes += self.PIECE_BYTES
      stream.synchronize()

  def mark(self):
    self.marked = self.bytes, time.monotonic()

  def rate(self):
    """Bytes a second since the mark."""
    return (self.bytes - self.marked[0]) / (time.monotonic() - self.marked[1])

  def end(self):
    self.ends = True
    self.thread.join()


def copy_thread_s():
  """Processor seconds of the copy threads of this process."""
  ticks = 0
  for task in pathlib.Path("/proc/self/task").iterdir():
    try:
      name, _, fields = (task / "stat").read_text().rpartition(")")
    except OSError:
      continue
    if "r2cc-taps-copy" in name:
      ticks += sum(map(int, fields.split()[11:13]))
  return ticks / 100
