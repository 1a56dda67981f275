"""What tests have in place of torch: tensors in memory of the standard library, and modules with hooks."""

import array
import unittest

from r2cc.observe import _library

TYPES = {"float32": "f", "int64": "q", "uint8": "B", "bfloat16": "H"}


class Tensor:
  """As much of torch.Tensor as taps look at."""

  def __init__(self, numbers, shape=None, dtype="float32", stride=None, device="cpu"):
    self.storage = array.array(TYPES[dtype], numbers)
    self.shape = tuple(shape if shape is not None else (len(self.storage),))
    self.dtype, self.device, self._stride = "torch." + dtype, device, stride

  def data_ptr(self):
    return self.storage.buffer_info()[0]

  def clone(self):
    return Tensor(self.storage, self.shape, self.dtype.partition(".")[2], self._stride, self.device)

  def contiguous(self):
    return self

  def element_size(self):
    return self.storage.itemsize

  def stride(self):
    if self._stride is not None:
      return self._stride
    strides, step = [], 1
    for size in reversed(self.shape):
      strides.insert(0, step)
      step *= size
    return tuple(strides)


class Module:
  """As much of torch.nn.Module as taps need."""

  def __init__(self, function=None, **children):
    self._function, self._children, self._before, self._after = function, children, {}, {}

  def named_modules(self, prefix=""):
    yield prefix, self
    for name, child in self._children.items():
      yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

  def _hook(self, hooks, hook):
    key = object()
    hooks[key] = hook
    return _Handle(hooks, key)

  def register_forward_pre_hook(self, hook):
    return self._hook(self._before, hook)

  def register_forward_hook(self, hook):
    return self._hook(self._after, hook)

  def __call__(self, *arguments):
    for hook in list(self._before.values()):
      hook(self, arguments)
    if self._function is not None:
      output = self._function(*arguments)
    else:
      output = arguments[0]
      for child in self._children.values():
        output = child(output)
    for hook in list(self._after.values()):
      hook(self, arguments, output)
    return output


class _Handle:

  def __init__(self, hooks, key):
    self._hooks, self._key = hooks, key

  def remove(self):
    self._hooks.pop(self._key, None)


def scaled(by):
  return Module(lambda tensor: Tensor([by * x for x in tensor.storage], tensor.shape))


def in_place(by):
  """Overwrites what it is given, as fused kernels do."""
  def function(tensor):
    for i, x in enumerate(tensor.storage):
      tensor.storage[i] = by * x
    return tensor
  return Module(function)


def skip_if_sanitized():
  """Python cannot load a library that needs a sanitizer's runtime before all others."""
  path = next(place for place in _library._places() if place.exists())  # pylint: disable=protected-access
  if b"__asan_init" in path.read_bytes() or b"__tsan_init" in path.read_bytes():
    raise unittest.SkipTest("a sanitized library does not load into a Python without its runtime")
