// The operations on a tensor's bytes: copies, statistics of each row, hashes. Templates over few memory operations, so that the host, the
// kernels and the fake device run the same code.
//
// The lanes of a block run this code together: the threads of a kernel's block; elsewhere there is one. `Ops` has Lane() and Lanes(), this
// one's number and how many there are; of each lane Load<T>(address), Read<T>(address) of a tensor, AtomicAdd(address, value), and
// CopyAlone(to, from, bytes); of all together Store<T>(address, value) by the first, Copy(to, from, bytes) in shares, and
// Reduce(value), whose result each lane has.
#ifndef R2CC_OBSERVE_GATHER_OPERATORS_H_
#define R2CC_OBSERVE_GATHER_OPERATORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "observe/record/kinds.h"
#include "observe/record/record.h"

namespace r2cc::observe {

// A tensor as rows; a row is runs of bytes without holes, in up to three loops. tap_work.h makes it of shape and strides.
struct TapWork {
  uint64_t data = 0;
  uint64_t rows = 1;  // of the tensor
  int64_t row_stride = 0;
  uint64_t counts[3] = {1, 1, 1};  // the last one is the innermost
  int64_t strides[3] = {0, 0, 0};
  uint64_t run_bytes = 0;
  Operator op = Operator::kCopy;
  Dtype dtype = Dtype::kU8;

  constexpr R2CC_OBSERVE_BOTH uint64_t RowBytes() const { return counts[0] * counts[1] * counts[2] * run_bytes; }
};

// Which rows of the tensor are in the record, in which order. Without indices the first `count`.
struct RowList {
  uint64_t count = 1;
  uint64_t indices = 0;  // an address; 0: none
  uint64_t index_bytes = 8;
  uint64_t faults = 0;  // an address of a count of indices that are beyond the tensor; 0: they are none
};

template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t LoadIndex(Ops* ops, uint64_t at, uint64_t bytes) {
  return bytes == 4 ? ops->template Load<uint32_t>(at) : ops->template Load<uint64_t>(at);
}

// One that is beyond the tensor is counted, and the first one is used for it.
template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t RowAt(Ops* ops, const TapWork& work, const RowList& list, uint64_t i) {
  if (list.indices == 0) return i;
  const uint64_t row = LoadIndex(ops, list.indices + i * list.index_bytes, list.index_bytes);
  if (row < work.rows) return row;
  if (list.faults != 0) ops->AtomicAdd(list.faults, 1);
  return 0;
}

// The rows of the list lie one behind the other.
constexpr R2CC_OBSERVE_BOTH bool IsOneRun(const TapWork& work, const RowList& list) {
  return work.run_bytes == work.RowBytes() && (list.count == 1 || static_cast<uint64_t>(work.row_stride) == work.run_bytes) &&
         list.indices == 0;
}

// The begin of run `number` of the list's runs.
template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t RunAt(Ops* ops, const TapWork& work, const RowList& list, uint64_t number) {
  const uint64_t k = number % work.counts[2], j = number / work.counts[2] % work.counts[1];
  const uint64_t i = number / work.counts[2] / work.counts[1] % work.counts[0];
  const uint64_t row = number / work.counts[2] / work.counts[1] / work.counts[0];
  return work.data + RowAt(ops, work, list, row) * static_cast<uint64_t>(work.row_stride) + i * static_cast<uint64_t>(work.strides[0]) +
         j * static_cast<uint64_t>(work.strides[1]) + k * static_cast<uint64_t>(work.strides[2]);
}

// Runs that are shorter are copied by one lane each.
constexpr uint64_t kRunOfAll = 1024;

// The bytes from `begin` to `end` of the list's rows, counted as they lie in the record, to `to + begin`.
template <typename Ops>
R2CC_OBSERVE_BOTH void CopyBytes(Ops* ops, const TapWork& work, const RowList& list, uint64_t begin, uint64_t end, uint64_t to) {
  if (begin >= end) return;
  if (IsOneRun(work, list)) {
    ops->Copy(to + begin, work.data + begin, end - begin);
    return;
  }
  const uint64_t last = (end - 1) / work.run_bytes;
  const bool together = work.run_bytes >= kRunOfAll;
  for (uint64_t run = begin / work.run_bytes + (together ? 0 : ops->Lane()); run <= last; run += together ? 1 : ops->Lanes()) {
    const uint64_t start = run * work.run_bytes;
    const uint64_t first = start < begin ? begin : start, behind = start + work.run_bytes < end ? start + work.run_bytes : end;
    const uint64_t from = RunAt(ops, work, list, run) + (first - start);
    if (together)
      ops->Copy(to + first, from, behind - first);
    else
      ops->CopyAlone(to + first, from, behind - first);
  }
}

// A bijection of 64-bit words (the finalizer of splitmix64).
constexpr R2CC_OBSERVE_BOTH uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}
// For each index a bijection of the word: a sum of such terms always changes where one word does, and does not depend on their order.
constexpr R2CC_OBSERVE_BOTH uint64_t HashTerm(uint64_t word, uint64_t index) { return Mix(word + Mix(index + 0x9e3779b97f4a7c15ULL)); }

template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t LoadElement(Ops* ops, uint64_t at, uint64_t bytes) {
  switch (bytes) {
    case 1: return ops->template Read<uint8_t>(at);
    case 2: return ops->template Read<uint16_t>(at);
    case 4: return ops->template Read<uint32_t>(at);
    default: return ops->template Read<uint64_t>(at);
  }
}

// This lane's share of the elements from `begin` to `end` of the list's rows, counted as they lie in the record: each(element, bits).
template <typename Ops, typename Each>
R2CC_OBSERVE_BOTH void ForEachElement(Ops* ops, const TapWork& work, const RowList& list, uint64_t begin, uint64_t end, Each each) {
  const uint64_t bytes = BytesOf(work.dtype);
  if (IsOneRun(work, list)) {
    for (uint64_t i = begin + ops->Lane(); i < end; i += ops->Lanes()) each(i, LoadElement(ops, work.data + i * bytes, bytes));
    return;
  }
  const uint64_t of_run = work.run_bytes / bytes;
  for (uint64_t i = begin + ops->Lane(); i < end; i += ops->Lanes())
    each(i, LoadElement(ops, RunAt(ops, work, list, i / of_run) + i % of_run * bytes, bytes));
}

// The lane's part of a sum.
template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t HashOfElements(Ops* ops, const TapWork& work, const RowList& list, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  ForEachElement(ops, work, list, begin, end, [&](uint64_t element, uint64_t bits) { sum += HashTerm(bits, element); });
  return sum;
}

inline R2CC_OBSERVE_BOTH float FloatOfBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Exponent and mantissa of a small float as one; `bias` and the bits are the type's. Its largest exponent is that of infinity and NaN if
// `ieee`.
inline R2CC_OBSERVE_BOTH float FloatOfSmall(uint32_t bits, int exponent_bits, int mantissa_bits, bool ieee) {
  const uint32_t exponent_most = (1U << exponent_bits) - 1, mantissa_most = (1U << mantissa_bits) - 1;
  const bool negative = (bits >> (exponent_bits + mantissa_bits) & 1) != 0;
  const uint32_t exponent = bits >> mantissa_bits & exponent_most, mantissa = bits & mantissa_most;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  float value;
  if (ieee && exponent == exponent_most)
    value = mantissa == 0 ? INFINITY : NAN;
  else if (!ieee && exponent == exponent_most && mantissa == mantissa_most)
    value = NAN;
  else if (exponent == 0)
    value = ldexpf(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  else
    value = ldexpf(static_cast<float>(mantissa | 1U << mantissa_bits), static_cast<int>(exponent) - bias - mantissa_bits);
  return negative ? -value : value;
}

inline R2CC_OBSERVE_BOTH double ValueOf(Dtype dtype, uint64_t bits) {
  double wide;
  switch (dtype) {
    case Dtype::kI8: return static_cast<int8_t>(bits);
    case Dtype::kI16: return static_cast<int16_t>(bits);
    case Dtype::kI32: return static_cast<int32_t>(bits);
    case Dtype::kI64: return static_cast<double>(static_cast<int64_t>(bits));
    case Dtype::kF16: return FloatOfSmall(static_cast<uint32_t>(bits), 5, 10, true);
    case Dtype::kBf16: return FloatOfBits(static_cast<uint32_t>(bits) << 16);
    case Dtype::kF8e4m3: return FloatOfSmall(static_cast<uint32_t>(bits), 4, 3, false);
    case Dtype::kF8e5m2: return FloatOfSmall(static_cast<uint32_t>(bits), 5, 2, true);
    case Dtype::kF32: return FloatOfBits(static_cast<uint32_t>(bits));
    case Dtype::kF64: memcpy(&wide, &bits, sizeof(wide)); return wide;
    default: return static_cast<double>(bits);
  }
}

// Sums of a row, or of a part of it.
struct StatsSums {
  double least = INFINITY, greatest = -INFINITY, sum = 0, squares = 0;
  uint64_t finite = 0;
  uint32_t nans = 0, infinities = 0;

  R2CC_OBSERVE_BOTH void Add(double value) {
    if (value != value) {
      ++nans;
    } else if (value == INFINITY || value == -INFINITY) {
      ++infinities;
    } else {
      ++finite;
      least = value < least ? value : least;
      greatest = value > greatest ? value : greatest;
      sum += value;
      squares += value * value;
    }
  }
  R2CC_OBSERVE_BOTH StatsSums& operator+=(const StatsSums& more) {
    least = more.least < least ? more.least : least;
    greatest = more.greatest > greatest ? more.greatest : greatest;
    sum += more.sum;
    squares += more.squares;
    finite += more.finite;
    nans += more.nans;
    infinities += more.infinities;
    return *this;
  }
  R2CC_OBSERVE_BOTH StatsRow Row() const {
    if (finite == 0) return {NAN, NAN, NAN, NAN, nans, infinities};
    const auto count = static_cast<double>(finite);
    return {static_cast<float>(least),
            static_cast<float>(greatest),
            static_cast<float>(sum / count),
            static_cast<float>(sqrt(squares / count)),
            nans,
            infinities};
  }
};

// Row `i` of the list to where the record has it.
template <typename Ops>
R2CC_OBSERVE_BOTH void StatsOfRow(Ops* ops, const TapWork& work, const RowList& list, uint64_t i, uint64_t to) {
  const uint64_t elements = work.RowBytes() / BytesOf(work.dtype);
  StatsSums sums;
  ForEachElement(ops, work, list, i * elements, (i + 1) * elements, [&](uint64_t, uint64_t bits) { sums.Add(ValueOf(work.dtype, bits)); });
  const StatsRow stats = ops->Reduce(sums).Row();
  uint64_t words[3];
  memcpy(words, &stats, sizeof(words));
  for (uint64_t w = 0; w < 3; ++w) ops->template Store<uint64_t>(to + i * sizeof(stats) + w * 8, words[w]);
}

constexpr R2CC_OBSERVE_BOTH uint64_t OutputBytes(const TapWork& work, uint64_t rows) {
  return work.op == Operator::kHash ? 8 : rows * (work.op == Operator::kStats ? sizeof(StatsRow) : work.RowBytes());
}

// All of a tap to where the record has it, by one lane. REQUIRES: each row of the list is one of the tensor.
template <typename Ops>
R2CC_OBSERVE_BOTH void GatherTap(Ops* ops, const TapWork& work, const RowList& list, uint64_t to) {
  const uint64_t bytes = list.count * work.RowBytes();
  switch (work.op) {
    case Operator::kCopy: CopyBytes(ops, work, list, 0, bytes, to); break;
    case Operator::kHash: ops->template Store<uint64_t>(to, HashOfElements(ops, work, list, 0, bytes / BytesOf(work.dtype))); break;
    case Operator::kStats:
      for (uint64_t i = 0; i < list.count; ++i) StatsOfRow(ops, work, list, i, to);
      break;
  }
}

// The host's memory: addresses are pointers.
struct HostOps {
  static constexpr uint64_t Lane() { return 0; }
  static constexpr uint64_t Lanes() { return 1; }
  template <typename T>
  T Load(uint64_t at) {
    T value;
    memcpy(&value, reinterpret_cast<const void*>(at), sizeof(value));
    return value;
  }
  template <typename T>
  T Read(uint64_t at) {
    return Load<T>(at);
  }
  template <typename T>
  void Store(uint64_t at, T value) {
    memcpy(reinterpret_cast<void*>(at), &value, sizeof(value));
  }
  void Copy(uint64_t to, uint64_t from, uint64_t bytes) { memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); }
  void CopyAlone(uint64_t to, uint64_t from, uint64_t bytes) { Copy(to, from, bytes); }
  uint64_t AtomicAdd(uint64_t at, uint64_t value) { return __atomic_fetch_add(reinterpret_cast<uint64_t*>(at), value, __ATOMIC_RELAXED); }
  template <typename T>
  T Reduce(const T& value) {
    return value;
  }
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_OPERATORS_H_
