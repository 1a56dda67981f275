"""What the tensors of taps-match hold at each step, on the GPU by torch and again by NumPy; and what a record must hold of them."""

import dataclasses
import math
import random

import numpy

# dtype of a record: (torch's name, bytes, NumPy's type of as many bits)
DTYPES = {
    "U8": ("uint8", 1, "u1"), "I8": ("int8", 1, "i1"), "BOOL": ("bool", 1, "u1"), "U16": ("uint16", 2, "u2"), "I16": ("int16", 2, "i2"),
    "F16": ("float16", 2, "f2"), "BF16": ("bfloat16", 2, "u2"), "U32": ("uint32", 4, "u4"), "I32": ("int32", 4, "i4"),
    "F32": ("float32", 4, "f4"), "U64": ("uint64", 8, "u8"), "I64": ("int64", 8, "i8"), "F64": ("float64", 8, "f8"),
    "F8_E4M3": ("float8_e4m3fn", 1, "u1"), "F8_E5M2": ("float8_e5m2", 1, "u1")}
MASK = (1 << 64) - 1
_A, _B, _STEP, _TAP = 0x2545F4914F6CDD1D, 0x369DEA0F31A53F85, 0x5851F42D4C957F2D, 0x14057B7EF767814F


def signed(value):
  """As torch's and NumPy's int64 have it."""
  value &= MASK
  return value - (1 << 64) if value >> 63 else value


ROWS_KEY, COUNT_KEY = 10_000, 10_001


def words(numbers, step, key):
  """64 bits for each of `numbers`, an array of int64 of torch or NumPy. Both wrap, and both shift arithmetically."""
  x = (numbers + (step * signed(_STEP) + signed(key * _TAP))) * signed(_A)
  x = x ^ (x >> 29)
  x = x * signed(_B)
  return x ^ (x >> 32)


@dataclasses.dataclass(frozen=True)
class Spec:
  """One tap. Shape and strides, in elements, are of the view of a buffer of `words` words, from element `offset` on."""
  name: str
  op: str
  dtype: str
  words: int
  offset: int
  shape: tuple
  strides: tuple
  overwritten: bool
  key: int

  @property
  def point(self):
    return f"{self.op}.{self.name}"


def specs(seed, count, rows, flat=False):
  """`rows`: how many rows each tensor has; 0: no rows. `flat`: copies are of whole 16-byte units without holes."""
  chance = random.Random(seed)
  made = []
  for key in range(count):
    op = ("copy", "copy", "copy", "copy", "stats", "hash")[key % 6]
    if flat and op == "stats":
      op = "copy"
    dtype = chance.choice([name for name in DTYPES if op != "stats" or name not in ("U64", "I64", "BOOL")])
    shape = tuple(chance.choice((1, 2, 3, 5, 7, 16, 33)) for _ in range(chance.randrange(3)))
    shape += (chance.choice((1, 3, 17, 64, 255, 256, 1000, 1024)),) if chance.random() < .9 else ()
    if key % 37 == 5:
      shape = (chance.choice((40_001, 65_536, 100_003)),)
    if rows:
      shape = (rows,) + (shape if len(shape) < 2 or shape[-1] < 10_000 else shape[-1:])
      if max(shape) > 10_000:
        shape = (rows, shape[-1] // 8)
    if flat and op == "copy":
      shape = (rows,) * (rows > 0) + (chance.choice((16, 64, 256, 1024, 4096)),)
    while len(shape) > 2 and math.prod(shape) > 30_000:
      shape = shape[:1] + shape[2:]
    order = list(range(len(shape)))
    kind = 0 if flat else chance.randrange(4)
    if kind == 1 and len(order) > 1:  # two dimensions change places
      i, j = chance.sample(order, 2)
      order[i], order[j] = order[j], order[i]
    strides, stride = [0] * len(shape), 1
    for dimension in reversed(order):
      strides[dimension] = stride
      stride *= shape[dimension]
      if kind == 2:  # with holes
        stride += chance.randrange(3)
    if kind == 3 and len(shape) > 1 and not rows:  # one dimension is the same memory again and again, as by expand()
      strides[chance.randrange(len(shape) - 1)] = 0
    offset = 0 if flat else chance.choice((0, 0, 1, 3))
    elements = offset + 1 + sum((size - 1) * step for size, step in zip(shape, strides))
    made.append(Spec(f"t{key}", op, dtype, -(-elements * DTYPES[dtype][1] // 8), offset, shape, tuple(strides), key % 5 == 3, key))
  return made


def names(variant, made):
  """By the names that taps have."""
  return {f"{spec.point}v{variant}" + {"copy": "", "stats": ":stats", "hash": ":hash"}[spec.op]: spec for spec in made}


def below(bits, most):
  return ((bits >> 8) & 0xFFFF) % most


def rows_of(plan, step):
  """The indices of the rows that the record of `step` has; None: it has no rows."""
  if plan["row_kind"] == "none":
    return None
  with numpy.errstate(over="ignore"):
    step = numpy.int64(step)
    count = int(below(words(numpy.arange(1, dtype=numpy.int64), step, COUNT_KEY), plan["chosen"] + 1)[0])
    chosen = below(words(numpy.arange(plan["chosen"], dtype=numpy.int64), step, ROWS_KEY), plan["rows"])
  return numpy.arange(count) if plan["row_kind"] == "first" else chosen[:count]


def table_of(exponent_bits, mantissa_bits, ieee):
  """The values of all 256 floats of 8 bits."""
  bias, result = (1 << (exponent_bits - 1)) - 1, []
  for bits in range(256):
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    top = exponent == (1 << exponent_bits) - 1
    if top and (mantissa == (1 << mantissa_bits) - 1 if not ieee else mantissa != 0):
      value = numpy.nan
    elif top and ieee:
      value = numpy.inf
    else:
      value = 2.0 ** (max(exponent, 1) - bias) * (mantissa / (1 << mantissa_bits) + (exponent != 0))
    result.append(-value if bits >> 7 else value)
  return numpy.array(result)


def array_of(spec, step):
  """What NumPy has of it, as bits."""
  _, size, kind = DTYPES[spec.dtype]
  with numpy.errstate(over="ignore"):
    buffer = words(numpy.arange(spec.words, dtype=numpy.int64), numpy.int64(step), spec.key)
  if spec.dtype == "BOOL":
    buffer = buffer & numpy.int64(0x0101010101010101)
  flat = buffer.view(kind)[spec.offset:]
  return numpy.lib.stride_tricks.as_strided(flat, spec.shape, tuple(size * stride for stride in spec.strides))


def mix(x):
  x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
  x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
  return x ^ (x >> numpy.uint64(31))


def hash_of(array, size):
  bits = numpy.ascontiguousarray(array).reshape(-1).view(f"u{size}").astype(numpy.uint64)
  with numpy.errstate(over="ignore"):
    index = mix(numpy.arange(len(bits), dtype=numpy.uint64) + numpy.uint64(0x9e3779b97f4a7c15))
    return int(mix(bits + index).sum(dtype=numpy.uint64))


def numbers_of(array, dtype, tables):
  """As float64. `tables`: of the types of 8 bits that NumPy lacks."""
  if dtype in tables:
    return tables[dtype][array]
  with numpy.errstate(invalid="ignore"):  # signalling NaN
    if dtype == "BF16":
      return (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    return array.astype(numpy.float64)


def wrong_stats(values, array, dtype, tables):
  """A line on what is not within bounds; None. `values`: a record's, rows of 6."""
  numbers = numbers_of(numpy.ascontiguousarray(array), dtype, tables)
  numbers = numbers.reshape(len(values), -1)
  for row, (found, its) in enumerate(zip(values, numbers)):
    finite = its[numpy.isfinite(its)]
    nans, infinities = int(numpy.isnan(its).sum()), int(numpy.isinf(its).sum())
    if (found.nans, found.infinities) != (nans, infinities):
      return f"row {row}: {found.nans} NaN, {found.infinities} infinities instead of {nans}, {infinities}"
    if len(finite) == 0:
      if not numpy.isnan(found.mean):
        return f"row {row}: mean {found.mean} of nothing"
      continue
    with numpy.errstate(over="ignore", invalid="ignore"):
      expected = numpy.array([finite.min(), finite.max()]).astype(numpy.float32)
      mean, rms = finite.mean(), numpy.sqrt((finite * finite).mean())
    if not numpy.array_equal(numpy.array([found.least, found.greatest], numpy.float32), expected):
      return f"row {row}: {found.least} to {found.greatest} instead of {expected}"
    # In double precision on both sides, in another order, then one float each: 2^-23 of the size of what was added.
    if numpy.isfinite(rms) and rms < 1e38 and (abs(found.mean - mean) > 3e-7 * max(rms, abs(mean)) + 1e-45
                                              or abs(found.rms - rms) > 3e-7 * rms + 1e-45):
      return f"row {row}: mean {found.mean}, rms {found.rms} instead of {mean}, {rms}"
  return None
