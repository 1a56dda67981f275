"""taps-lean: what taps cost in a decode loop of an 8B Llama shape in one CUDA graph, against the same loop without, with the inline control
in the same run. Another process reads every record meanwhile."""

import ctypes
import dataclasses
import gc
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

from r2cc import observe
from tests.observe.gpu import others

CONTEXT, PROMPT, HEAD, KV_HEADS, VOCABULARY = 512, 64, 128, 8, 32768
OURS = ("ours", "off", "stats", "hash", "held16", "stopped", "disk", "link")
EVERY = ("h", "q", "k", "v", "a", "o", "x1", "h2", "g", "u", "m", "d", "y")


def random_weight(*shape):
  return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02


class Layer(torch.nn.Module):
  """Grouped-query attention with a static cache, and an MLP."""

  def __init__(self, number, width, inner, batch):
    super().__init__()
    self.number, self.width, self.batch, self.every = number, width, batch, False
    self.weights = dict(q=random_weight(width, width), k=random_weight(width, KV_HEADS * HEAD), v=random_weight(width, KV_HEADS * HEAD),
                        o=random_weight(width, width), g=random_weight(width, inner), u=random_weight(width, inner),
                        d=random_weight(inner, width))
    self.keys = torch.zeros(batch, KV_HEADS, CONTEXT, HEAD, device="cuda", dtype=torch.bfloat16)
    self.values = torch.zeros_like(self.keys)
    self.scale = torch.ones(width, device="cuda", dtype=torch.bfloat16)

  def forward(self, x, position, mask):
    w, batch, heads = self.weights, self.batch, self.width // HEAD
    h = F.rms_norm(x, (self.width,), self.scale)
    q, k, v = h @ w["q"], h @ w["k"], h @ w["v"]
    self.keys.index_copy_(2, position, k.view(batch, 1, KV_HEADS, HEAD).transpose(1, 2))
    self.values.index_copy_(2, position, v.view(batch, 1, KV_HEADS, HEAD).transpose(1, 2))
    a = F.scaled_dot_product_attention(q.view(batch, 1, heads, HEAD).transpose(1, 2), self.keys, self.values, attn_mask=mask,
                                       enable_gqa=True).transpose(1, 2).reshape(batch, 1, self.width)
    o = a @ w["o"]
    x1 = x + o
    h2 = F.rms_norm(x1, (self.width,), self.scale)
    g, u = h2 @ w["g"], h2 @ w["u"]
    m = F.silu(g) * u
    d = m @ w["d"]
    y = x1 + d
    if self.every:
      for name, tensor in zip(EVERY, (h, q, k, v, a, o, x1, h2, g, u, m, d, y)):
        observe.point(f"every.{self.number}.{name}", tensor)
    return y


class Model(torch.nn.Module):
  """One greedy step for the whole batch; everything is on the GPU."""

  def __init__(self, layers, width, inner, batch):
    super().__init__()
    self.width, self.batch = width, batch
    self.embedding, self.output = random_weight(VOCABULARY, width), random_weight(width, VOCABULARY)
    self.layers = torch.nn.ModuleList([Layer(number, width, inner, batch) for number in range(layers)])
    self.scale = torch.ones(width, device="cuda", dtype=torch.bfloat16)
    self.ids = torch.zeros(batch, 1, dtype=torch.long, device="cuda")
    self.position = torch.zeros(1, dtype=torch.long, device="cuda")
    self.places = torch.arange(CONTEXT, device="cuda")

  names_points = True  # of every tensor, by observe.point()

  def control_points(self, every):
    assert not every
    return self.layers

  def reset(self):
    self.position.fill_(PROMPT)

  def forward(self):
    x, mask = self.embedding[self.ids], (self.places <= self.position)[None, None, None, :]
    for layer in self.layers:
      x = layer(x, self.position, mask)
    logits = F.rms_norm(x, (self.width,), self.scale) @ self.output
    self.ids.copy_(logits.argmax(-1))
    self.position.add_(1)

  def see_every(self, every):
    for layer in self.layers:
      layer.every = every

  @staticmethod
  def points(every):
    return ["every.*.*"] if every else ["layers.*"]


class Control:
  """One kernel and one publication for each tap, at its point, as hooks that `attach` of other tools puts in."""

  def __init__(self, folder):
    torch.zeros(1, device="cuda")  # PyTorch makes its context current with the first work
    self.cuda = ctypes.CDLL("libcuda.so.1")
    self.cuda.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
    module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
    image = (folder / "control.fatbin").read_bytes()
    if not image:
      raise RuntimeError("control.fatbin is empty: the kit was made without nvcc")
    self.call("cuModuleLoadData", ctypes.byref(module), image)
    self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"control_tap")
    self.state = torch.zeros(2, dtype=torch.int64, device="cuda")
    self.host = torch.zeros(8, dtype=torch.int64, pin_memory=True)
    self.ring, self.at = torch.zeros(1 << 28, dtype=torch.uint8, device="cuda"), 0

  def call(self, name, *arguments):
    result = getattr(self.cuda, name)(*arguments)
    if result != 0:
      text = ctypes.c_char_p()
      self.cuda.cuGetErrorName(result, ctypes.byref(text))
      raise RuntimeError(f"the inline control: {name} gives {result}, {(text.value or b'an unknown error').decode()}")

  def tap(self, tensor):
    size = tensor.numel() * tensor.element_size()
    blocks = 1 if size <= 65536 else 4 if size <= 4 << 20 else 16
    values = [ctypes.c_uint64(value) for value in (tensor.data_ptr(), size // 16, self.ring.data_ptr() + self.at, self.state.data_ptr(),
                                                   self.host.data_ptr())]
    arguments = (ctypes.c_void_p * 5)(*[ctypes.addressof(value) for value in values])
    self.call("cuLaunchKernel", self.kernel, blocks, 1, 1, 256, 1, 1, 0, torch.cuda.current_stream().cuda_stream, arguments, None)
    self.at += size


def warm(model, steps):
  side = torch.cuda.Stream()
  side.wait_stream(torch.cuda.current_stream())
  with torch.cuda.stream(side):
    for _ in range(steps):
      model()
  torch.cuda.current_stream().wait_stream(side)
  model.reset()


def capture(model, before=lambda: None):
  warm(model, 2)
  before()
  graph = torch.cuda.CUDAGraph()
  with torch.cuda.graph(graph):
    model()
  model.reset()
  torch.cuda.synchronize()
  return graph


def timed(model, graph, steps):
  """us of each step by the GPU's events, and us a step from the first to the last."""
  model.reset()
  events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
  torch.cuda.synchronize()
  events[0].record()
  for i in range(steps):
    graph.replay()
    events[i + 1].record()
    if i % 8 == 7:
      events[i - 3].synchronize()  # a few steps ahead, no more
  torch.cuda.synchronize()
  return [a.elapsed_time(b) * 1000 for a, b in zip(events, events[1:])], events[0].elapsed_time(events[-1]) * 1000 / steps


class Ours:
  """Taps, their reader, and a graph that was captured with them."""

  def __init__(self, model, points, policy, program, number, kind):
    self.run = f"lean-{number}-{time.monotonic_ns()}"
    free = torch.cuda.mem_get_info()[0]
    # A folder whose disk is full.
    self.disk_is_full = kind == "disk"
    files = os.path.join(os.environ["R2CC_TAPS_FULL_DISK"], self.run) if self.disk_is_full else None
    self.taps = observe.attach(model, points, run=self.run, device="cuda", policy=policy, files=files)
    try:
      self.reader = subprocess.Popen([sys.executable, program, "_count", self.run], stdout=subprocess.PIPE, text=True)
      assert self.reader.stdout.readline().strip() == "ready"
      self.graph = capture(model)
      self.device_mib = (free - torch.cuda.mem_get_info()[0]) / (1 << 20)
      if kind == "stopped":  # of the time-out it hears nothing: the ring is full, and steps are dropped
        self.reader.send_signal(signal.SIGSTOP)
      if kind == "off":
        self.taps.disable()
        self.graph.replay()
        self.graph.replay()
        torch.cuda.synchronize()
      assert self.taps.error is None, self.taps.error
    except BaseException:
      self.taps.close()
      raise

  def end(self):
    self.reader.send_signal(signal.SIGCONT)
    try:
      self.taps.flush(60)
    except observe.Error:
      if not self.disk_is_full:
        raise
    counters, copy_s = self.taps.counters(), others.copy_thread_s()
    inline = [name for name, placement in self.taps.self_check.items() if placement == "inline"]
    self.taps.close()
    read = json.loads(self.reader.stdout.readline())
    self.reader.wait(60)
    return dict(records=read["records"], bytes_a_record=read["bytes"] // max(read["records"], 1), counters=counters,
                reader=read["counts"], inline=inline[:3], device_mib=round(self.device_mib), copy_thread_s=copy_s)


def make(kind, model, options, number):
  """A captured graph, and what ends it."""
  if kind in OURS:
    points = [point + {"stats": ":stats", "hash": ":hash"}.get(kind, "") for point in options["points"]]
    policy = options["policy"]
    if kind == "held16":
      policy = dataclasses.replace(policy, held_mib=16)
    if kind == "stopped":
      policy = dataclasses.replace(policy, host_mib=16 if model.batch > 1 else 2)
    ours = Ours(model, points, policy, options["program"], number, kind)
    return ours.graph, ours.end
  if kind == "pinned":
    return others.Pinned(model, model.control_points(options["every"]), capture), lambda: {}
  if kind in ("eager", "cpu"):
    return others.Eager(model, model.control_points(options["every"]), kind == "cpu"), lambda: {}
  if kind == "control":
    control, hooks = options["control"], []
    warm(model, 2)
    if options["every"] and model.names_points:
      observe.point = lambda name, tensor: control.tap(tensor)
    else:
      hooks = [layer.register_forward_hook(lambda module, given, out: control.tap(out[0] if isinstance(out, tuple) else out))
               for layer in model.control_points(options["every"])]
    try:
      graph = torch.cuda.CUDAGraph()
      control.at = 0
      with torch.cuda.graph(graph):
        model()
    finally:
      observe.point = options["point"]
      for hook in hooks:
        hook.remove()
    model.reset()
    torch.cuda.synchronize()
    return graph, lambda: {}
  return capture(model), lambda: {}


def compare(results, case, kind, model, options, captures, rounds, steps):
  """Each capture against a base capture of its own, in turns, A B B A."""
  ratios, differences, bases, p99s, walls, rows, keeps = [], [], [], [], [], [], []
  for number in range(captures):
    model.see_every(options["every"])
    free = torch.cuda.mem_get_info()[0]
    base = capture(model)
    base_mib = (free - torch.cuda.mem_get_info()[0]) / (1 << 20)
    graph, end = make(kind, model, options, number)
    timed(model, base, steps)
    timed(model, graph, steps)
    of = {"base": [], "variant": []}
    steps_of = {"base": [], "variant": []}
    begin_s = time.monotonic()
    link, rates = others.Link() if kind == "link" else None, {"base": [], "variant": []}
    for turn in range(rounds):
      for name in ("base", "variant") if turn % 2 == 0 else ("variant", "base"):
        if link is not None:
          link.mark()
        each, mean = timed(model, base if name == "base" else graph, steps)
        if link is not None:
          rates[name].append(link.rate())
        of[name].append(mean)
        steps_of[name] += each
    walls.append(time.monotonic() - begin_s)
    if link is not None:
      link.end()
      keeps.append(statistics.median(rates["variant"]) / statistics.median(rates["base"]))
    base_us, variant_us = statistics.median(of["base"]), statistics.median(of["variant"])
    bases.append(base_us)
    differences.append(variant_us - base_us)
    ratios.append(variant_us / base_us - 1)
    p99 = {name: sorted(all_of)[int(len(all_of) * .99)] for name, all_of in steps_of.items()}
    p99s.append(p99["variant"] / p99["base"] - 1)
    rows.append(end())
    del graph, base, end
    gc.collect()
    torch.cuda.empty_cache()
  last = rows[-1]
  counters = last.get("counters", {})
  whole = all(row["counters"]["dropped_device"] + row["counters"]["dropped_host"] == 0 and row["records"] == row["counters"]["records"]
              for row in rows if row)
  dropped = counters.get("dropped_device", 0) + counters.get("dropped_host", 0)
  if kind == "stopped":  # nothing is asked but that it is as quick, and that it did drop
    whole = dropped > 0
  if kind == "link":  # the link has no room for all records
    whole = all(row["records"] == row["counters"]["records"] for row in rows)
  if kind == "disk":
    whole = whole and all(row["counters"]["lost_to_files"] > 0 for row in rows)
  results.add(case, f"{options['name']} {kind}", base_us=round(statistics.median(bases), 1),
              more_us=round(statistics.median(differences), 1), more_percent=round(100 * statistics.median(ratios), 3),
              least_percent=round(100 * min(ratios), 3), greatest_percent=round(100 * max(ratios), 3),
              p99_percent=round(100 * statistics.median(p99s), 3), captures=captures, rounds=rounds, steps=steps, whole=whole,
              dropped=dropped,
              records=last.get("records"), bytes_a_record=last.get("bytes_a_record"), counters=counters, reader=last.get("reader"),
              inline=last.get("inline"), device_mib=last.get("device_mib"), base_device_mib=round(base_mib),
              copy_thread_s=last.get("copy_thread_s"),
              wall_s=round(walls[-1], 2), others_keep=round(statistics.median(keeps), 4) if keeps else None)
  return 0 if whole else 1


def run_all(results, case, program, configurations, kinds, only, captures, rounds, steps, deadline_s):
  """`configurations`: (batch, every, kinds, function that makes the model, name). Leaves out what no longer fits before `deadline_s` (of
  time.monotonic()), and says so."""
  failed = 0
  try:
    control = Control(pathlib.Path(__file__).resolve().parent) if kinds is None or "control" in kinds else None
  except (OSError, RuntimeError) as error:
    results.add(case, "control", error=f"{type(error).__name__}: {error}"[:1500])
    control, failed = None, 1
  usual = observe.Policy(reader_timeout_ms=60_000)
  large = observe.Policy(device_mib=1024, host_mib=1024, held_mib=256, reader_timeout_ms=60_000)
  took_s, model, made_by, done = 0, None, None, set()
  for batch, every, its_kinds, make_model, name in configurations:
    if only and name.replace(", ", "-").replace(" ", "") not in only:
      continue
    if model is None or made_by != (make_model, batch):
      model = None
      gc.collect()
      torch.cuda.empty_cache()
      with torch.no_grad():
        model, made_by = make_model(batch), (make_model, batch)
    options = dict(name=name, every=every, points=model.points(every), program=program, control=control,
                   policy=large if every and batch > 1 else usual, point=observe.point)
    for kind in kinds or its_kinds:
      if (kind == "control" and control is None) or (name, kind) in done:
        continue
      done.add((name, kind))
      if deadline_s is not None and time.monotonic() + 1.2 * took_s > deadline_s:
        results.add(case, f"{name} {kind}", left_out="no time is left")
        continue
      begin_s = time.monotonic()
      results.print_line(f"{case} {name}: {kind}")
      try:
        with torch.no_grad():
          failed += compare(results, case, kind, model, options, captures, rounds, steps)
      except (observe.Error, RuntimeError, AssertionError, ValueError, KeyError) as error:
        results.add(case, f"{name} {kind}", error=f"{type(error).__name__}: {error}"[:1500])
        failed += 1
      took_s = time.monotonic() - begin_s
  return failed


def run(results, program, quick, only=None, captures=3, rounds=4, steps=40, deadline_s=None, kinds=None):
  """`only`: names of configurations, such as batch1-32taps. `kinds`: in place of those of each."""
  layers, width, inner = (4, 2048, 8192) if quick else (32, 4096, 14336)
  captures, rounds = (1, 2) if quick else (captures, rounds)
  main, more = ("none", "ours", "control"), ("off", "stats", "hash", "held16", "stopped", "link", "pinned", "eager", "cpu")

  def make_model(batch):
    return Model(layers, width, inner, batch)
  # What matters most first, as time may run out.
  configurations = [
      (batch, every, its_kinds, make_model, f"batch {batch}, {layers * (len(EVERY) if every else 1)} taps")
      for batch, every, its_kinds in ((1, False, main), (1, True, main), (32, True, main), (32, False, main + more), (8, False, main),
                                      (1, False, more))]
  return run_all(results, "taps-lean", program, configurations, kinds, only, captures, rounds, steps, deadline_s)
