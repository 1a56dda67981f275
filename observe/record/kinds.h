// The types of elements, and what is kept of a tensor. For kernels, too.
#ifndef R2CC_OBSERVE_RECORD_KINDS_H_
#define R2CC_OBSERVE_RECORD_KINDS_H_

#include <cstdint>

#include "observe/record/record.h"

namespace r2cc::observe {

// Part of the format: append only.
enum class Dtype : uint8_t { kU8, kI8, kBool, kU16, kI16, kF16, kBf16, kU32, kI32, kF32, kU64, kI64, kF64, kF8e4m3, kF8e5m2, kStats };
constexpr auto kDtypeNewest = Dtype::kStats;
constexpr R2CC_OBSERVE_BOTH uint64_t BytesOf(Dtype dtype) {
  return dtype == Dtype::kStats                             ? 24
         : dtype >= Dtype::kF8e4m3 || dtype <= Dtype::kBool ? 1
         : dtype <= Dtype::kBf16                            ? 2
         : dtype <= Dtype::kF32                             ? 4
                                                            : 8;
}

enum class Operator : uint8_t { kCopy, kStats, kHash };
constexpr auto kOperatorNewest = Operator::kHash;

// The result of kStats for a row. The four values cover the row's finite elements, and are NaN if it has none.
struct StatsRow {
  float least, greatest, mean, rms;
  uint32_t nans, infinities;
};
static_assert(sizeof(StatsRow) == 24);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RECORD_KINDS_H_
