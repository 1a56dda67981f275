"""What a tensor is in memory: of torch, of anything with __array_interface__ or the buffer protocol, or a list of numbers."""

import array
import ctypes
import dataclasses

from . import _library

_OF_FORMAT = {"B": "U8", "b": "I8", "?": "BOOL", "H": "U16", "h": "I16", "e": "F16", "I": "U32", "i": "I32", "f": "F32", "d": "F64"}
for _signed, _unsigned in (("l", "L"), ("q", "Q"), ("n", "N")):
  _bits = 8 * array.array("l").itemsize if _signed == "l" else 64
  _OF_FORMAT[_signed], _OF_FORMAT[_unsigned] = f"I{_bits}", f"U{_bits}"
_OF_TORCH = {"uint8": "U8", "int8": "I8", "bool": "BOOL", "uint16": "U16", "int16": "I16", "float16": "F16", "bfloat16": "BF16",
             "uint32": "U32", "int32": "I32", "float32": "F32", "uint64": "U64", "int64": "I64", "float64": "F64",
             "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
_OF_TYPESTR = {"u1": "U8", "i1": "I8", "b1": "BOOL", "u2": "U16", "i2": "I16", "f2": "F16", "u4": "U32", "i4": "I32", "f4": "F32",
               "u8": "U64", "i8": "I64", "f8": "F64"}


class _Buffer(ctypes.Structure):
  """Py_buffer: the way to the address of memory that may be read-only."""
  _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
              ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
              ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = (ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int), ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = (ctypes.POINTER(_Buffer),), None
_FULL_RO = 0x011C  # PyBUF_FULL_RO


def _address(view):
  buffer = _Buffer()
  if _get_buffer(view, ctypes.byref(buffer), _FULL_RO) != 0:
    raise _library.Error("the buffer gives no address")
  address = buffer.buf
  _release_buffer(ctypes.byref(buffer))
  return address


@dataclasses.dataclass
class Described:
  """Where it is. `owner` keeps the memory."""
  address: int
  shape: tuple
  strides: tuple  # in bytes
  dtype: str
  owner: object

  @property
  def code(self):
    return _library.DTYPES.index(self.dtype)

  def struct(self):
    """For a call; the struct keeps what it points to."""
    dimensions = len(self.shape)
    return _library.Tensor(data=self.address, shape=(ctypes.c_uint64 * dimensions)(*self.shape),
                           strides=(ctypes.c_int64 * dimensions)(*self.strides), dimensions=dimensions)

  def is_contiguous(self):
    expected = _library.DTYPE_BYTES[self.code]
    for size, stride in zip(reversed(self.shape), reversed(self.strides)):
      if size != 1 and stride != expected:
        return False
      expected *= size
    return True

  def bytes(self):
    """Without holes."""
    count = _library.DTYPE_BYTES[self.code]
    for size in self.shape:
      count *= size
    return count

  def copied(self):
    """The same in memory of its own."""
    if not self.is_contiguous():
      raise _library.Error("it has holes: make it contiguous")
    count = self.bytes()
    data = ctypes.create_string_buffer(ctypes.string_at(self.address, count) if count else b"", max(count, 1))
    return Described(ctypes.addressof(data), self.shape, self.strides, self.dtype, data)


def is_tensor(value):
  return hasattr(value, "data_ptr") or hasattr(value, "__array_interface__") or hasattr(value, "__cuda_array_interface__") or isinstance(
      value, (array.array, memoryview, bytes, bytearray))


def gpu_of(device):
  """The number of the GPU that `device` names, None for host memory: "host", "cuda", "cuda:1", a torch.device."""
  kind, _, number = str(device).partition(":")
  return int(number or 0) if kind == "cuda" and (number or "0").isdigit() else None


def describe(value, gpu=None):
  """Raises Error, one line, for what is no tensor in the memory of GPU `gpu`, or of the host if that is None."""
  if isinstance(value, Described):
    return value
  if gpu is not None:
    return _on_gpu(value, gpu)
  if isinstance(value, (list, tuple)):
    numbers = list(value)
    if not all(isinstance(number, (int, float)) for number in numbers):
      raise _library.Error("a list may hold numbers alone")
    value = array.array("d" if any(isinstance(number, float) for number in numbers) else "q", numbers)
  if hasattr(value, "data_ptr"):
    return _of_torch(value, None)
  if hasattr(value, "__cuda_array_interface__"):
    raise _library.Error("it is on a GPU, and these taps are of host memory: attach with device=\"cuda\"")
  if hasattr(value, "__array_interface__"):
    interface = value.__array_interface__
    name = interface["typestr"]
    if name[0] == ">" or name[1:] not in _OF_TYPESTR:
      raise _library.Error(f"dtype {name} is not one of the record's")
    strides = interface.get("strides")
    dtype = _OF_TYPESTR[name[1:]]
    return Described(interface["data"][0], tuple(interface["shape"]), strides or _without_holes(interface["shape"], dtype), dtype, value)
  try:
    view = memoryview(value)
  except TypeError:
    raise _library.Error(f"{type(value).__name__} is no tensor") from None
  if view.format.lstrip("@=<") not in _OF_FORMAT:
    raise _library.Error(f"format {view.format} is not one of the record's")
  dtype = _OF_FORMAT[view.format.lstrip("@=<")]
  return Described(_address(view), view.shape, view.strides, dtype, view)


def _of_torch(value, gpu):
  device = getattr(value, "device", "cpu")
  kind = getattr(device, "type", str(device).split(":")[0])
  if gpu is None and kind != "cpu":
    raise _library.Error(f"it is on {device}, and these taps are of host memory: attach with device=\"{device}\"")
  if gpu is not None and gpu_of(device) != gpu:
    raise _library.Error(f"it is on {device}, and these taps are of cuda:{gpu}")
  name = str(value.dtype).rpartition(".")[2]
  if name not in _OF_TORCH:
    raise _library.Error(f"dtype {name} is not one of the record's")
  item = value.element_size()
  return Described(value.data_ptr(), tuple(value.shape), tuple(item * stride for stride in value.stride()), _OF_TORCH[name], value)


def _on_gpu(value, gpu):
  if hasattr(value, "data_ptr"):
    return _of_torch(value, gpu)
  if not hasattr(value, "__cuda_array_interface__"):
    raise _library.Error(f"{type(value).__name__} is no tensor on a GPU")
  interface = value.__cuda_array_interface__
  name = interface["typestr"]
  if name[0] == ">" or name[1:] not in _OF_TYPESTR:
    raise _library.Error(f"dtype {name} is not one of the record's")
  dtype, shape = _OF_TYPESTR[name[1:]], tuple(interface["shape"])
  return Described(interface["data"][0], shape, interface.get("strides") or _without_holes(shape, dtype), dtype, value)


def _without_holes(shape, dtype):
  strides, stride = [], _library.DTYPE_BYTES[_library.DTYPES.index(dtype)]
  for size in reversed(shape):
    strides.insert(0, stride)
    stride *= size
  return tuple(strides)
