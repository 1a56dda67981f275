"""taps-hf: what taps cost in LlamaForCausalLM of transformers, 8B shape, random weights, static cache, one CUDA graph: as taps-lean."""

import torch

from tests.observe.gpu import lean

PROMPT, CONTEXT = 64, 512
OF_LAYER = ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
            "mlp.gate_proj", "mlp.up_proj", "mlp.act_fn", "mlp.down_proj")


class Model(torch.nn.Module):
  """One greedy step. No model of transformers is changed."""
  names_points = False

  def __init__(self, shape, batch):
    super().__init__()
    import transformers  # pylint: disable=import-outside-toplevel
    layers, width, inner, heads, vocabulary = shape
    config = transformers.LlamaConfig(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
                                      num_key_value_heads=8, head_dim=128, vocab_size=vocabulary, max_position_embeddings=4096)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
      self.llama = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    self.batch, self.cache = batch, transformers.StaticCache(config=config, max_cache_len=CONTEXT)
    ids = torch.randint(0, vocabulary, (batch, PROMPT), device="cuda")
    logits = self.llama(input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits
    self.token = logits[:, -1:].argmax(-1).clone()
    self.position = torch.full((1,), PROMPT, device="cuda", dtype=torch.long)
    # Each layer of the cache counts on the device: without a reset a second run begins where the first one ended.
    self.counts = [value for layer in self.cache.layers for value in vars(layer).values()
                   if torch.is_tensor(value) and value.numel() == 1 and not value.is_floating_point()]

  def reset(self):
    self.position.fill_(PROMPT)
    for count in self.counts:
      count.fill_(PROMPT)

  def see_every(self, every):
    pass

  @staticmethod
  def points(every):
    usual = ["llama.model.embed_tokens", "llama.model.layers.*"]
    return usual + [f"llama.model.layers.*.{name}" for name in OF_LAYER] if every else usual

  def control_points(self, every):
    base = self.llama.model
    found = [base.embed_tokens]
    for layer in base.layers:
      found += [layer.get_submodule(name) for name in OF_LAYER] if every else []
      found.append(layer)
    return found

  def forward(self):
    places = self.position[None].expand(self.batch, 1)
    out = self.llama(input_ids=self.token, past_key_values=self.cache, use_cache=True, position_ids=places)
    self.token.copy_(out.logits[:, -1:].argmax(-1))
    self.position.add_(1)


def run(results, program, quick, only=None, captures=3, rounds=4, steps=40, deadline_s=None, kinds=None):
  try:
    import transformers
  except ImportError as error:
    results.add("taps-hf", "all", passed=None, not_run=f"transformers is not installed: {error}")
    results.print_line("taps-hf: NOT RUN: transformers is not installed")
    return 0
  results.print_line(f"transformers {transformers.__version__}")
  shape = (4, 2048, 8192, 16, 32768) if quick else (32, 4096, 14336, 32, 128256)
  captures, rounds = (1, 2) if quick else (captures, rounds)
  layers, main = shape[0], ("none", "ours", "control")

  def make_model(batch):
    return Model(shape, batch)
  configurations = [(batch, every, main, make_model, f"batch {batch}, {1 + layers * (11 if every else 1)} taps")
                    for batch, every in ((1, False), (1, True), (8, False), (32, False), (32, True))]
  return lean.run_all(results, "taps-hf", program, configurations, kinds, only, captures, rounds, steps, deadline_s)
