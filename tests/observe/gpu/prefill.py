"""taps-prefill: what it costs to take the hidden states of a prompt, 8 x 2048 tokens of an 8B Llama shape, 4.4 GB a step, eager. They do
not fit into the GPU's ring: they are kept until the copy engine has copied them from where they are. Another process reads every record."""

import json
import statistics
import time

import torch
import torch.nn.functional as F

from r2cc import observe
from tests.observe.gpu import card

HEAD, KV_HEADS = 128, 8


class Layer(torch.nn.Module):

  def __init__(self, width, inner):
    super().__init__()
    random = lambda *shape: torch.randn(*shape, device=card.DEVICE, dtype=torch.bfloat16) * .02  # noqa: E731
    self.width = width
    self.q, self.o = random(width, width), random(width, width)
    self.k, self.v = random(width, KV_HEADS * HEAD), random(width, KV_HEADS * HEAD)
    self.g, self.u, self.d = random(width, inner), random(width, inner), random(inner, width)

  def forward(self, x):
    batch, tokens, _ = x.shape
    h = F.rms_norm(x, (self.width,))
    split = lambda tensor, heads: tensor.view(batch, tokens, heads, HEAD).transpose(1, 2)  # noqa: E731
    a = F.scaled_dot_product_attention(split(h @ self.q, self.width // HEAD), split(h @ self.k, KV_HEADS), split(h @ self.v, KV_HEADS),
                                       is_causal=True, enable_gqa=True)
    x = x + a.transpose(1, 2).reshape(batch, tokens, self.width) @ self.o
    h = F.rms_norm(x, (self.width,))
    return x + (F.silu(h @ self.g) * (h @ self.u)) @ self.d


class Model(torch.nn.Module):

  def __init__(self, layers):
    super().__init__()
    self.layers = layers

  def forward(self, x):
    for layer in self.layers:
      x = layer(x)
    return x


def timed(model, x, steps):
  """ms of each step by the GPU's events."""
  events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
  events[0].record()
  for event in events[1:]:
    model(x)
    event.record()
  card.synchronize()
  return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def run(results, program, quick, only=None):
  del only
  count, width, inner, batch, tokens = (4, 2048, 8192, 2, 1024) if quick else (32, 4096, 14336, 8, 2048)
  rounds, steps = (2, 3) if quick else (6, 6)
  layers = torch.nn.ModuleList([Layer(width, inner) for _ in range(count)])
  base, tapped = Model(layers), Model(layers)  # the hooks of `tapped` do nothing in a step of `base`
  x = torch.randn(batch, tokens, width, device=card.DEVICE, dtype=torch.bfloat16)
  size_mib = (count + 1) * x.numel() * 2 >> 20
  policy = observe.Policy(device_mib=max(8, size_mib // 32), held_mib=2 * size_mib + 64, host_mib=2 * size_mib + 64,
                          reader_timeout_ms=60_000)
  name, reader, of = f"prefill-{time.monotonic_ns()}", None, {"base": [], "again": [], "tapped": []}
  try:
    with torch.no_grad(), observe.attach(tapped, ["layers.0:in", "layers.*"], run=name, device=card.ATTACH, policy=policy) as taps:
      taps.phase = "prefill"
      tapped(x)
      taps.flush(60)
      reader = card.start(program, "_count", name)
      assert reader.stdout.readline().strip() == "ready"
      timed(tapped, x, 2)
      timed(base, x, 2)
      torch.cuda.reset_peak_memory_stats()
      for number in range(rounds):
        for kind in ("base", "tapped", "again") if number % 2 == 0 else ("again", "tapped", "base"):
          of[kind].append(statistics.mean(timed(tapped if kind == "tapped" else base, x, steps)))
      taps.flush(60)
      counters, error = taps.counters(), taps.error
    read = card.line_of(reader)
  except (observe.Error, RuntimeError, AssertionError, ValueError) as failure:
    results.add("taps-prefill", f"{batch} x {tokens}", passed=False, error=f"{type(failure).__name__}: {failure}"[:1500])
    return 1
  finally:
    if reader is not None:
      card.end(reader)
  more = [a / b - 1 for a, b in zip(of["tapped"], of["base"])]
  again = [a / b - 1 for a, b in zip(of["again"], of["base"])]
  dropped = counters["dropped_device"] + counters["dropped_host"]
  whole = read["records"] == counters["records"] == counters["steps"] - dropped and dropped == 0
  more_percent = 100 * statistics.median(more)
  passed = whole and error is None and (quick or more_percent <= 3)
  results.print_line(f"prefill: {json.dumps(of)}, {counters}, {read}")
  results.add("taps-prefill", f"{batch} x {tokens}", passed=passed, base_ms=round(statistics.median(of["base"]), 2),
              more_percent=round(more_percent, 2), least_percent=round(100 * min(more), 2), greatest_percent=round(100 * max(more), 2),
              again_percent=round(100 * statistics.median(again), 2), bytes_a_record=read["bytes"] // max(read["records"], 1),
              records=read["records"], dropped=dropped, whole=whole, held_mib=policy.held_mib, host_mib=policy.host_mib,
              peak_mib=torch.cuda.max_memory_allocated() >> 20, error=error)
  return 0 if passed else 1
