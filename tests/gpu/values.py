"""What the elements of a collective hold, so that a swapped, stale, doubled or lost piece shows. Pure: works on numbers and on tensors.

An element is base(index) + shift(rank, iteration), a small integer. The bounds are chosen so that the sum over all ranks is exact in the
element's type.
"""

import dataclasses
from typing import Any

# The largest N for which all integers 0..N are exact in the type.
EXACT_MAX = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8, "float64": 2**53, "int8": 127, "uint8": 255, "int32": 2**31 - 1,
             "int64": 2**63 - 1, "float8_e4m3fn": 16, "float8_e5m2": 8, "bool": 1}
SIZE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int8": 1, "uint8": 1, "int32": 4, "int64": 8, "float8_e4m3fn": 1,
              "float8_e5m2": 1, "bool": 1}
_BASE_MODULUS, _SHIFT_MODULUS = 97, 89


@dataclasses.dataclass(frozen=True)
class Pattern:
  """Of one type and number of ranks."""
  base_modulus: int
  shift_modulus: int

  def base(self, index: Any) -> Any:
    """Changes from element to element; `index` may be a tensor of int64."""
    return index * 2654435761 // 128 % self.base_modulus

  def shift(self, rank: int, iteration: int) -> int:
    return (7 * rank + 13 * iteration) % self.shift_modulus

  def value(self, rank: int, iteration: int, index: Any) -> Any:
    return self.base(index) + self.shift(rank, iteration)

  def shift_sum(self, world: int, iteration: int) -> int:
    return sum(self.shift(rank, iteration) for rank in range(world))


def pattern(dtype: str, world: int) -> Pattern:
  """The widest values of which `world` sum up exactly."""
  each_max = EXACT_MAX[dtype] // world
  if each_max < 1:  # too narrow for a sum that tells ranks apart; a bool's sum is an "or"
    return Pattern(2, 1)
  base = max(2, min(_BASE_MODULUS, (each_max + 3) // 2))
  return Pattern(base, max(1, min(_SHIFT_MODULUS, each_max - base + 2)))


def sum_is_exact(dtype: str, world: int) -> bool:
  """Whether a reduction over `world` ranks can be checked."""
  found = pattern(dtype, world)
  return world * (found.base_modulus - 1 + found.shift_modulus - 1) <= EXACT_MAX[dtype]
