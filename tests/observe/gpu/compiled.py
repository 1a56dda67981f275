"""taps-compile: models that torch.compile compiles with CUDA graphs, with taps and without. No graph break and no skipped CUDA graph that
the model alone does not have, each step a record, the same tokens, and what is tapped is what the model gives."""

import os
import time

import torch
import torch.nn.functional as F

from r2cc import observe
from tests.observe.gpu import card

WIDTH, HEADS, INNER, LAYERS, VOCABULARY, CONTEXT, BATCH = 1024, 16, 4096, 6, 8192, 256, 4


class Attention(torch.nn.Module):

  def __init__(self, dtype):
    super().__init__()
    make = lambda: torch.nn.Linear(WIDTH, WIDTH, bias=False, dtype=dtype, device=card.DEVICE)  # noqa: E731
    self.q_proj, self.k_proj, self.v_proj, self.o_proj = make(), make(), make(), make()
    for name in ("keys", "values"):
      self.register_buffer(name, torch.zeros(BATCH, HEADS, CONTEXT, WIDTH // HEADS, dtype=dtype, device=card.DEVICE))

  def forward(self, x, position, mask):
    split = lambda tensor: tensor.view(BATCH, 1, HEADS, WIDTH // HEADS).transpose(1, 2)  # noqa: E731
    self.keys.index_copy_(2, position, split(self.k_proj(x)))
    self.values.index_copy_(2, position, split(self.v_proj(x)))
    given = F.scaled_dot_product_attention(split(self.q_proj(x)), self.keys, self.values, attn_mask=mask)
    return self.o_proj(given.transpose(1, 2).reshape(BATCH, 1, WIDTH))


class Layer(torch.nn.Module):

  def __init__(self, dtype, in_place):
    super().__init__()
    self.attention, self.in_place = Attention(dtype), in_place
    self.up, self.down = [torch.nn.Linear(a, b, bias=False, dtype=dtype, device=card.DEVICE) for a, b in ((WIDTH, INNER), (INNER, WIDTH))]

  def forward(self, x, position, mask):
    norm = lambda tensor: tensor * torch.rsqrt(tensor.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(tensor.dtype)  # noqa: E731
    given = self.attention(norm(x), position, mask)
    x = x.add_(given) if self.in_place else x + given  # in place: over what the layer before gave
    given = observe.point("mlp", self.down(F.silu(self.up(norm(x)))))
    return x.add_(given) if self.in_place else x + given


class Model(torch.nn.Module):

  def __init__(self, dtype, in_place):
    super().__init__()
    torch.manual_seed(1)
    self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH, dtype=dtype, device=card.DEVICE)
    self.layers = torch.nn.ModuleList([Layer(dtype, in_place) for _ in range(LAYERS)])
    self.lm_head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False, dtype=dtype, device=card.DEVICE)
    self.register_buffer("places", torch.arange(CONTEXT, device=card.DEVICE))

  def forward(self, ids, position):
    x, mask = self.embedding(ids), (self.places <= position)[None, None, None, :]
    for layer in self.layers:
      x = layer(x, position, mask)
    return self.lm_head(x)


class Loop:
  """Greedy decoding by calls of `step`. The tokens that it takes and gives are in tensors that stay where they are."""

  def __init__(self, model):
    self.model = model
    self.ids = torch.zeros(BATCH, 1, dtype=torch.long, device=card.DEVICE)
    self.position = torch.zeros(1, dtype=torch.long, device=card.DEVICE)

  def reset(self):
    self.ids.copy_(torch.arange(1, 1 + BATCH, device=card.DEVICE)[:, None])
    self.position.zero_()

  def run(self, step, count):
    """The tokens, and us a step."""
    tokens, times = [], []
    for _ in range(count):
      begin_s = time.perf_counter()
      torch.compiler.cudagraph_mark_step_begin()
      self.ids.copy_(step(self.ids, self.position).argmax(-1))
      self.position.add_(1)
      card.synchronize()
      times.append(1e6 * (time.perf_counter() - begin_s))
      tokens.append(self.ids.flatten().tolist())
    return tokens, sorted(times)[count // 2]


def breaks_and_skips():
  from torch._dynamo.utils import counters  # pylint: disable=import-outside-toplevel
  return sum(counters["graph_break"].values()), counters["inductor"].get("cudagraph_skips", 0), [
      str(reason)[:200] for reason in list(counters["graph_break"])[:2]]


def forget_compiled():
  from torch._dynamo.utils import counters  # pylint: disable=import-outside-toplevel
  torch._dynamo.reset()
  counters.clear()


def compiled(model, whole):
  return torch.compile(model, mode="reduce-overhead", fullgraph=whole)


def round_as_eager(yes):
  """Inductor keeps more digits than bf16 has within a fused kernel. With this it rounds where the model without a compiler does."""
  import torch._inductor.config as inductor  # pylint: disable=import-outside-toplevel
  inductor.emulate_precision_casts = yes


def own(plan, print_line):
  """A Llama-like model in plain PyTorch."""
  steps, dtype = plan["steps"], getattr(torch, plan["dtype"])
  model = Model(dtype, plan["in_place"]).eval()
  loop = Loop(model)
  points = ["layers.*", "layers.*.attention.o_proj:in", "mlp", "layers.*:stats", "lm_head", "lm_head:hash"]
  round_as_eager(plan["rounds"])
  forget_compiled()
  loop.reset()
  plain, plain_us = loop.run(compiled(model, plan["whole"]), steps)
  plain_breaks, plain_skips, _ = breaks_and_skips()
  forget_compiled()
  policy = observe.Policy(host_mib=1024)
  with observe.attach(model, points, run=plan["run"], device=card.ATTACH, tags={"token": loop.ids, "position": loop.position},
                      policy=policy) as taps:
    loop.reset()
    loop.run(model, 2)  # checked, and taken
    loop.reset()
    reader = observe.read(plan["run"])
    step, seen = compiled(model, plan["whole"]), []
    tokens = []
    for count in (1, 1, 1, 1, 1, 1, steps - 6):
      some, tapped_us = loop.run(step, count)
      tokens += some
      taps.flush(60)
      seen.append(taps.counters()["steps"] - 2)
    counters, error = taps.counters(), taps.error
    found_breaks, found_skips, reasons = breaks_and_skips()
    taps.disable("layers.*")
    loop.reset()
    loop.run(step, 6)
    taps.flush(60)
    after_switch = breaks_and_skips()[:2]
  # What was tapped: logits that gave the token, the tags of the step, and the layers' numbers next to those of a model without a compiler.
  wrong, records, off = [], 0, 0
  with reader:
    for item in reader.steps():
      at = item.number - 2
      if at >= steps:
        off += "layers.0" not in item.taps
        continue
      if at < 0:
        continue
      records += 1
      logits = torch.frombuffer(bytearray(item["lm_head"].data), dtype=dtype).view(BATCH, VOCABULARY)
      given = plain[at - 1] if at else list(range(1, 1 + BATCH))
      if logits.argmax(-1).tolist() != tokens[at] or item.tags["position"].tolist() != [at]:
        wrong.append(f"step {at}: logits or position are those of another step")
      if [row[0] for row in item.tags["token"].tolist()] != (tokens[at - 1] if at else given):
        wrong.append(f"step {at}: the tag token is another step's")
      if at == 20:
        wrong += unlike(model, loop, tokens, at, item, dtype)
  print_line(f"{plan['run']}: steps seen {seen}, breaks {found_breaks} {reasons}, skips {found_skips}, {counters}, self-check "
             f"{sorted(set(taps.self_check.values()))}")
  exact = seen == [1, 2, 3, 4, 5, 6, steps] and records == steps
  # In fused kernels a tapped tensor is rounded to bf16 and an untapped one is not: what differs there is the compiler's choice.
  is_same = tokens == plain or (dtype is torch.bfloat16 and not plan["rounds"])
  passed = (exact and not wrong and is_same and error is None and found_breaks <= plain_breaks and found_skips <= plain_skips and
            after_switch == (found_breaks, found_skips) and off >= 4)
  return dict(passed=passed, whole_graph=plan["whole"], breaks=found_breaks, breaks_without=plain_breaks, reasons=reasons,
              cudagraph_skips=found_skips, skips_without=plain_skips, steps_exact=exact, steps_seen=seen[:6], records=records,
              same_tokens=tokens == plain, tokens_differ_from=next((i for i, (a, b) in enumerate(zip(tokens, plain)) if a != b), None),
              wrong=wrong[:3], off_after_switch=off, inline=sum(value == "inline" for value in taps.self_check.values()),
              us=round(tapped_us, 1), us_without=round(plain_us, 1), error=error)


def unlike(model, loop, tokens, step, item, dtype):
  """Lines on layers of `item` that are far from what the model gives without a compiler: as one that was overwritten is."""
  states, hooks = {}, []
  for number, layer in enumerate(model.layers):
    hooks.append(layer.register_forward_hook(lambda module, given, out, number=number: states.update({number: out.clone()})))
  loop.reset()
  for at in range(step + 1):
    model(loop.ids, loop.position)
    loop.ids.copy_(torch.tensor(tokens[at], device=card.DEVICE)[:, None])
    loop.position.add_(1)
  for hook in hooks:
    hook.remove()
  lines = []
  for number, state in states.items():
    found = torch.frombuffer(bytearray(item[f"layers.{number}"].data), dtype=dtype).float().view(BATCH, WIDTH)
    expected = state.float().cpu().view(BATCH, WIDTH)
    far = ((found - expected).norm() / expected.norm()).item()
    if not far < .03:
      lines.append(f"layers.{number} is {far:.3f} away from what the model gives")
  return lines


def generate(plan, print_line):
  """Hugging Face's `generate`, static cache, which compiles the decode step."""
  import transformers  # pylint: disable=import-outside-toplevel
  torch.manual_seed(1)
  config = transformers.LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=6, num_attention_heads=16,
                                    num_key_value_heads=8, vocab_size=8192)
  model = transformers.LlamaForCausalLM(config).to(torch.float32).to(card.DEVICE).eval()
  prompt, tokens = torch.arange(1, 65, device=card.DEVICE).reshape(4, 16), plan["steps"]

  def decode(count, disable):
    return model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, cache_implementation="static",
                          disable_compile=disable, pad_token_id=0, attention_mask=torch.ones_like(prompt))

  forget_compiled()
  plain = decode(tokens, False)
  plain_breaks, plain_skips, _ = breaks_and_skips()
  forget_compiled()
  request = torch.tensor([7, 8, 9, 10], device=card.DEVICE)
  with observe.attach(model, ["model.layers.*", "lm_head:hash"], run=plan["run"], device=card.ATTACH, tags={"request": request},
                      policy=observe.Policy(host_mib=1024)) as taps:
    decode(tokens, True)  # each shape is checked, and the cache has the length that it will have
    card.synchronize()
    taps.flush(60)
    before = taps.counters()["steps"]
    reader = observe.read(plan["run"])
    begin_s = time.perf_counter()
    tapped = decode(tokens, False)
    card.synchronize()
    took_s = time.perf_counter() - begin_s
    taps.flush(60)
    counters, error = taps.counters(), taps.error
    found_breaks, found_skips, reasons = breaks_and_skips()
  with reader:
    records = sum(step.number >= before for step in reader.steps())
  steps = counters["steps"] - before
  print_line(f"generate: {counters}, {steps} steps, breaks {found_breaks} {reasons}")
  passed = (torch.equal(plain, tapped) and steps == tokens and records == tokens and error is None and found_breaks <= plain_breaks and
            found_skips <= plain_skips)
  return dict(passed=passed, transformers=transformers.__version__, same_tokens=torch.equal(plain, tapped), steps=steps, asked_steps=tokens,
              records=records, breaks=found_breaks, breaks_without=plain_breaks, reasons=reasons, cudagraph_skips=found_skips,
              skips_without=plain_skips, took_s=round(took_s, 1), error=error)


def run(results, program, quick, only=None):
  del program
  failed, steps = 0, 60 if quick else 200
  parts = [(name, own, dict(dtype=dtype, in_place=in_place, whole=whole, rounds=rounds)) for name, dtype, in_place, whole, rounds in (
      ("whole-graph", "float32", False, True, False), ("bf16", "bfloat16", False, False, True),
      ("bf16-fused", "bfloat16", False, False, False), ("in-place", "float32", True, False, False))]
  parts.append(("generate", generate, {}))
  for name, function, plan in parts:
    if only and name not in only:
      continue
    if name == "generate":
      try:
        import transformers  # pylint: disable=import-outside-toplevel,unused-import
      except ImportError as error:
        results.add("taps-compile", name, passed=None, not_run=f"transformers is not installed: {error}")
        results.print_line("taps-compile generate: NOT RUN: transformers is not installed")
        continue
    results.print_line(f"taps-compile {name}")
    try:
      with torch.no_grad():
        row = function(dict(plan, steps=steps, run=f"compile-{name}-{os.getpid()}-{int(time.time())}"), results.print_line)
    except Exception as error:  # pylint: disable=broad-except  # a compiler's errors are of many classes
      row = dict(passed=False, error=f"{type(error).__name__}: {error}"[:3000])
    results.add("taps-compile", name, **row)
    failed += not row["passed"]
    forget_compiled()
    card.forget()
  return failed
