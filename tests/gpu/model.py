"""A small GPT (124 million parameters in its full size), and the same model split over ranks for decoding. Weights come from a seed."""

import dataclasses
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Shape:
  layers: int = 12
  width: int = 768
  heads: int = 12
  vocabulary: int = 50304
  context: int = 1024


FULL = Shape()
TINY = Shape(layers=2, width=96, heads=12, vocabulary=512, context=64)


def attend(query: Any, key: Any, value: Any) -> Any:
  """Causal attention. PyTorch's flash kernel is deterministic where deterministic algorithms are asked for; others need not be."""
  if query.is_cuda:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
      return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
  scores = query @ key.transpose(-2, -1) / query.size(-1)**0.5
  mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
  return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ value


class Block(nn.Module):
  """Attention and a feed-forward layer, each beside a residual."""

  def __init__(self, shape: Shape):
    super().__init__()
    self._heads = shape.heads
    self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
    self.qkv, self.out = nn.Linear(shape.width, 3 * shape.width), nn.Linear(shape.width, shape.width)
    self.up, self.down = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)

  def forward(self, x: Any) -> Any:
    batch, length, width = x.shape
    parts = self.qkv(self.norm1(x)).view(batch, length, 3, self._heads, width // self._heads).permute(2, 0, 3, 1, 4)
    mixed = attend(parts[0], parts[1], parts[2]).transpose(1, 2).reshape(batch, length, width)
    x = x + self.out(mixed)
    return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
  """The output layer shares the embedding's weights."""

  def __init__(self, shape: Shape):
    super().__init__()
    self.tokens, self.positions = nn.Embedding(shape.vocabulary, shape.width), nn.Embedding(shape.context, shape.width)
    self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
    self.norm = nn.LayerNorm(shape.width)
    for parameter in self.parameters():
      if parameter.dim() > 1:
        nn.init.normal_(parameter, std=0.02)

  def forward(self, ids: Any, targets: Any) -> Any:
    x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
    for block in self.blocks:
      x = block(x)
    logits = functional.linear(self.norm(x), self.tokens.weight)
    return functional.cross_entropy(logits.view(-1, logits.size(-1)).float(), targets.reshape(-1))


class SplitDecoder:
  """Tensor parallel: each rank has some heads and some of the feed-forward layer; two sums over all ranks in each layer."""

  def __init__(self, shape: Shape, rank: int, world: int, batch: int, device: Any, seed: int, sum_over_ranks: Callable[[Any], None]):
    if shape.heads % world:
      raise ValueError(f"{shape.heads} heads cannot be split over {world} ranks")
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    self._shape, self._batch, self._sum = shape, batch, sum_over_ranks
    self._own_heads, self._head_width = shape.heads // world, shape.width // shape.heads
    generator = torch.Generator(device=device).manual_seed(seed)
    draw = lambda *sizes: (torch.randn(*sizes, generator=generator, device=device) * 0.05).to(kind)
    part = lambda whole, dim: whole.chunk(world, dim)[rank].contiguous()
    self._tokens, self._positions = draw(shape.vocabulary, shape.width), draw(shape.context, shape.width)
    self._layers = []
    for _ in range(shape.layers):  # every rank draws all of them, so that all have the same whole
      heads = [part(draw(shape.width, shape.width), 0) for _ in range(3)]
      self._layers.append((torch.cat(heads), part(draw(shape.width, shape.width), 1), part(draw(4 * shape.width, shape.width), 0),
                           part(draw(shape.width, 4 * shape.width), 1)))
    sizes = (shape.layers, 2, batch, self._own_heads, shape.context, self._head_width)
    self._cache = torch.zeros(sizes, dtype=kind, device=device)

  def step(self, ids: Any, position: int) -> Any:
    """The next token of each of the batch."""
    shape, batch = self._shape, self._batch
    x = self._tokens[ids] + self._positions[position]
    for layer, (qkv, out, up, down) in enumerate(self._layers):
      parts = functional.linear(functional.layer_norm(x, (shape.width,)), qkv).view(batch, 3, self._own_heads, self._head_width)
      keys, values = self._cache[layer]
      keys[:, :, position], values[:, :, position] = parts[:, 1], parts[:, 2]
      scores = torch.einsum("bhd,bhtd->bht", parts[:, 0], keys[:, :, :position + 1]) / self._head_width**0.5
      mixed = torch.einsum("bht,bhtd->bhd", torch.softmax(scores.float(), -1).to(x.dtype), values[:, :, :position + 1])
      partial = functional.linear(mixed.reshape(batch, -1), out)
      self._sum(partial)
      x = x + partial
      partial = functional.linear(functional.gelu(functional.linear(functional.layer_norm(x, (shape.width,)), up)), down)
      self._sum(partial)
      x = x + partial
    return functional.linear(functional.layer_norm(x, (shape.width,)), self._tokens).float().argmax(-1)
