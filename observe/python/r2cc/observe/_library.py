"""libr2cc-observe.so by ctypes: its structs, its calls, and their errors."""

import ctypes
import os
import pathlib

DTYPES = ("U8", "I8", "BOOL", "U16", "I16", "F16", "BF16", "U32", "I32", "F32", "U64", "I64", "F64", "F8_E4M3", "F8_E5M2", "STATS")
DTYPE_BYTES = (1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 1, 1, 24)
OPERATORS = ("copy", "stats", "hash")
PHASES = {"decode": 1, "prefill": 2}
NOTHING, RECORD, END = 0, 1, 2
CUT_OFF, BROKEN = 4, 6


class Error(Exception):
  """A call was refused; one line says why. `code` is one of observe.h."""

  def __init__(self, line, code=0):
    super().__init__(line)
    self.code = code


class Sized(ctypes.Structure):
  """A struct that begins with its size."""

  def __init__(self, **fields):
    super().__init__(bytes=ctypes.sizeof(self), **fields)


class Options(Sized):
  _fields_ = [("bytes", ctypes.c_uint64), ("run", ctypes.c_char_p), ("device", ctypes.c_char_p), ("rank", ctypes.c_uint64),
              ("host_bytes", ctypes.c_uint64), ("every", ctypes.c_uint64), ("phases", ctypes.c_uint64), ("block_ns", ctypes.c_uint64),
              ("reader_timeout_ns", ctypes.c_uint64), ("device_bytes", ctypes.c_uint64),
              ("held_bytes", ctypes.c_uint64)]


class Tap(Sized):
  _fields_ = [("bytes", ctypes.c_uint64), ("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_uint64)),
              ("dimensions", ctypes.c_uint32), ("op", ctypes.c_uint8), ("dtype", ctypes.c_uint8), ("group", ctypes.c_uint8),
              ("rows", ctypes.c_uint8)]


class Tensor(Sized):
  _fields_ = [("bytes", ctypes.c_uint64), ("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_uint64)),
              ("strides", ctypes.POINTER(ctypes.c_int64)), ("dimensions", ctypes.c_uint64)]


class Rows(Sized):
  _fields_ = [("bytes", ctypes.c_uint64), ("count", ctypes.c_uint64), ("indices", ctypes.c_void_p), ("index_bytes", ctypes.c_uint64),
              ("count_at", ctypes.c_void_p), ("count_bytes", ctypes.c_uint64)]


class Counts(Sized):
  _fields_ = [("bytes", ctypes.c_uint64)] + [(name, ctypes.c_uint64) for name in (
      "steps", "records", "dropped_device", "dropped_host", "unwanted", "missed", "cut_off", "lost_to_files")]

  def as_dict(self):
    return {name: getattr(self, name) for name, _ in self._fields_[1:]}


class Run(Sized):
  _fields_ = [("bytes", ctypes.c_uint64)] + [(name, ctypes.c_uint64) for name in ("id", "pid", "holder_pid", "rank", "life", "alive")] + [
      ("counts", Counts), ("ring_bytes", ctypes.c_uint64), ("run", ctypes.c_char * 72), ("cause", ctypes.c_char * 200)]


class Record(Sized):
  _fields_ = [("bytes", ctypes.c_uint64)] + [(name, ctypes.c_uint64) for name in (
      "found", "step", "sequence", "groups", "time_ns", "arrival_ns", "layout", "rows", "rank", "tags", "taps")] + [
          ("gap", Counts), ("data", ctypes.c_void_p), ("data_bytes", ctypes.c_uint64)]


class View(Sized):
  _fields_ = [("bytes", ctypes.c_uint64), ("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("data_bytes", ctypes.c_uint64),
              ("shape", ctypes.c_uint64 * 9), ("dimensions", ctypes.c_uint32), ("op", ctypes.c_uint8), ("dtype", ctypes.c_uint8),
              ("group", ctypes.c_uint8), ("rows", ctypes.c_uint8)]


_HANDLE, _U64, _POINTER = ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER
_CALLS = {
    "open": (_POINTER(Options), _POINTER(_HANDLE)),
    "files": (_HANDLE, ctypes.c_char_p, _U64, _U64),
    "layout": (_HANDLE, _POINTER(Tap), _U64, _POINTER(Tap), _U64, _U64, _POINTER(ctypes.c_uint32)),
    "begin": (_HANDLE, ctypes.c_uint32, _U64, _POINTER(Rows), _POINTER(ctypes.c_int)),
    "inline": (_HANDLE, ctypes.c_int, _U64, _POINTER(Tensor)),
    "gather": (_HANDLE, _POINTER(Tensor), _U64),
    "must_hold": (_HANDLE, ctypes.c_uint32, _POINTER(ctypes.c_int)),
    "hold": (_HANDLE, ctypes.c_uint32, _U64, _POINTER(Tensor), _U64, _POINTER(Tensor), _U64, _POINTER(_U64)),
    "released": (_HANDLE, _POINTER(_U64)),
    "abandon": (_HANDLE,),
    "stream": (_HANDLE, _U64),
    "hash": (_HANDLE, _POINTER(Tensor), ctypes.c_uint8, _POINTER(_U64)),
    "set": (_HANDLE, _U64),
    "counters": (_HANDLE, _POINTER(Counts)),
    "flush": (_HANDLE, _U64),
    "close": (_HANDLE,),
    "find": (ctypes.c_char_p, _POINTER(Run), _U64, _POINTER(_U64)),
    "reader_open": (ctypes.c_char_p, _U64, _POINTER(_HANDLE)),
    "reader_register": (_HANDLE,),
    "next": (_HANDLE, _POINTER(Record)),
    "record_tap": (_HANDLE, ctypes.c_int, _U64, _POINTER(View)),
    "release_record": (_HANDLE,),
    "reader_counts": (_HANDLE, _POINTER(Run)),
    "reader_close": (_HANDLE,),
}


def _places():
  here = pathlib.Path(__file__).resolve().parent
  if os.environ.get("R2CC_OBSERVE_LIBRARY"):
    yield pathlib.Path(os.environ["R2CC_OBSERVE_LIBRARY"])
    return
  yield here / "libr2cc-observe.so"  # a wheel's
  # Bazel's: where the sources lie is a link that leads out of the runfiles.
  yield pathlib.Path(__file__).parent.parents[2] / "capi" / "libr2cc-observe.so"
  yield pathlib.Path("/usr/lib/r2cc/libr2cc-observe.so")


class _Library:
  """Opened with the first call."""

  def __init__(self):
    self._library = None

  def _open(self):
    places = list(_places())
    for place in places:
      if place.exists():
        library = ctypes.CDLL(str(place))
        break
    else:
      raise Error("libr2cc-observe.so is in none of " + ", ".join(map(str, places)) + "; R2CC_OBSERVE_LIBRARY names it")
    for name, types in _CALLS.items():
      function = getattr(library, "r2cc_observe_" + name)
      function.argtypes, function.restype = types, ctypes.c_int
    library.r2cc_observe_error.restype = library.r2cc_observe_release.restype = ctypes.c_char_p
    library.r2cc_observe_crc32c.argtypes = (ctypes.c_char_p, _U64, ctypes.c_uint32)
    library.r2cc_observe_crc32c.restype = ctypes.c_uint32
    return library

  @property
  def library(self):
    if self._library is None:
      self._library = self._open()
    return self._library

  def call(self, name, *arguments):
    code = getattr(self.library, "r2cc_observe_" + name)(*arguments)
    if code != 0:
      raise Error(self.library.r2cc_observe_error().decode("ascii", "replace"), code)

  def crc32c(self, data, seed=0):
    return self.library.r2cc_observe_crc32c(data, len(data), seed)


_the = _Library()
call = _the.call
crc32c = _the.crc32c



def version():
  """Release, revision and the version of records, as --version prints them."""
  return _the.library.r2cc_observe_release().decode("ascii", "replace")


def find(run=None):
  """The producers of this user: Run structs."""
  count = ctypes.c_uint64()
  most = 64
  while True:
    runs = (Run * most)(*(Run() for _ in range(most)))
    call("find", None if run is None else run.encode(), runs, most, ctypes.byref(count))
    if count.value <= most:
      return list(runs[:count.value])
    most = 2 * count.value
