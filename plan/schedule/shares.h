// Cuts a vector into blocks.
#ifndef R2CC_PLAN_SCHEDULE_SHARES_H_
#define R2CC_PLAN_SCHEDULE_SHARES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::plan {

// Segments of equal length, each cut in the same proportions. Block s * n + i is piece i of segment s.
class Shares {
 public:
  // `blocks` equal pieces.
  Shares(uint64_t bytes, uint32_t blocks);
  // shares >= 0, at least one of them above 0.
  Shares(uint64_t bytes, uint32_t segments, std::span<const double> shares);

  uint64_t bytes() const { return bytes_; }
  bool even() const { return up_to_.empty(); }
  Range RangeOf(uint32_t first, uint32_t count) const { return {Cut(first), Cut(first + count)}; }

 private:
  uint64_t Cut(uint32_t block) const;

  uint64_t bytes_;
  uint32_t segments_;
  std::vector<double> up_to_;  // the sum of the shares before piece i, of 1; empty: even
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_SHARES_H_
