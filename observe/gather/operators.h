// What is done with a tensor's bytes: copies, statistics of each row, hashes. Templates over few memory operations, so that the host, the
// kernels and the fake device run the same code. `Ops` has Load<T>(address), Store<T>(address, value) and Copy(to, from, bytes).
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
};

template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t RowAt(Ops* ops, const RowList& list, uint64_t i) {
  if (list.indices == 0) return i;
  if (list.index_bytes == 4) return ops->template Load<uint32_t>(list.indices + i * 4);
  return ops->template Load<uint64_t>(list.indices + i * 8);
}

// each(address of a run) in order.
template <typename Each>
R2CC_OBSERVE_BOTH void ForEachRun(const TapWork& work, uint64_t row, Each each) {
  const uint64_t at = work.data + row * static_cast<uint64_t>(work.row_stride);
  for (uint64_t i = 0; i < work.counts[0]; ++i)
    for (uint64_t j = 0; j < work.counts[1]; ++j)
      for (uint64_t k = 0; k < work.counts[2]; ++k)
        each(at + i * static_cast<uint64_t>(work.strides[0]) + j * static_cast<uint64_t>(work.strides[1]) +
             k * static_cast<uint64_t>(work.strides[2]));
}

template <typename Ops>
R2CC_OBSERVE_BOTH void CopyRow(Ops* ops, const TapWork& work, uint64_t row, uint64_t to) {
  ForEachRun(work, row, [&](uint64_t from) {
    ops->Copy(to, from, work.run_bytes);
    to += work.run_bytes;
  });
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
    case 1: return ops->template Load<uint8_t>(at);
    case 2: return ops->template Load<uint16_t>(at);
    case 4: return ops->template Load<uint32_t>(at);
    default: return ops->template Load<uint64_t>(at);
  }
}

// Of one row whose first element has the number `index` in the record.
template <typename Ops>
R2CC_OBSERVE_BOTH uint64_t HashOfRow(Ops* ops, const TapWork& work, uint64_t row, uint64_t index) {
  const uint64_t bytes = BytesOf(work.dtype);
  uint64_t sum = 0;
  ForEachRun(work, row, [&](uint64_t from) {
    for (uint64_t at = 0; at < work.run_bytes; at += bytes) sum += HashTerm(LoadElement(ops, from + at, bytes), index++);
  });
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

template <typename Ops>
R2CC_OBSERVE_BOTH StatsRow StatsOfRow(Ops* ops, const TapWork& work, uint64_t row) {
  const uint64_t bytes = BytesOf(work.dtype);
  StatsSums sums;
  ForEachRun(work, row, [&](uint64_t from) {
    for (uint64_t at = 0; at < work.run_bytes; at += bytes) sums.Add(ValueOf(work.dtype, LoadElement(ops, from + at, bytes)));
  });
  return sums.Row();
}

constexpr R2CC_OBSERVE_BOTH uint64_t OutputBytes(const TapWork& work, uint64_t rows) {
  return work.op == Operator::kHash ? 8 : rows * (work.op == Operator::kStats ? sizeof(StatsRow) : work.RowBytes());
}

// All of a tap to where the record has it. REQUIRES: each row of the list is one of the tensor.
template <typename Ops>
R2CC_OBSERVE_BOTH void GatherTap(Ops* ops, const TapWork& work, const RowList& list, uint64_t to) {
  const uint64_t elements = work.RowBytes() / BytesOf(work.dtype);
  uint64_t hash = 0;
  for (uint64_t i = 0; i < list.count; ++i) {
    const uint64_t row = RowAt(ops, list, i);
    switch (work.op) {
      case Operator::kCopy: CopyRow(ops, work, row, to + i * work.RowBytes()); break;
      case Operator::kStats: {
        const StatsRow stats = StatsOfRow(ops, work, row);
        uint64_t words[3];
        memcpy(words, &stats, sizeof(words));
        for (uint64_t w = 0; w < 3; ++w) ops->template Store<uint64_t>(to + i * sizeof(stats) + w * 8, words[w]);
        break;
      }
      case Operator::kHash: hash += HashOfRow(ops, work, row, i * elements); break;
    }
  }
  if (work.op == Operator::kHash) ops->template Store<uint64_t>(to, hash);
}

// The host's memory: addresses are pointers.
struct HostOps {
  template <typename T>
  T Load(uint64_t at) {
    T value;
    memcpy(&value, reinterpret_cast<const void*>(at), sizeof(value));
    return value;
  }
  template <typename T>
  void Store(uint64_t at, T value) {
    memcpy(reinterpret_cast<void*>(at), &value, sizeof(value));
  }
  void Copy(uint64_t to, uint64_t from, uint64_t bytes) { memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); }
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_OPERATORS_H_
