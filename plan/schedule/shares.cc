#include "plan/schedule/shares.h"

#include <algorithm>

#include "base/core/check.h"

namespace r2cc::plan {

Shares::Shares(uint64_t bytes, uint32_t blocks) : bytes_(bytes), segments_(blocks) { R2CC_CHECK(blocks >= 1); }

Shares::Shares(uint64_t bytes, uint32_t segments, std::span<const double> shares) : bytes_(bytes), segments_(segments) {
  double sum = 0;
  for (const double share : shares) {
    R2CC_CHECK(share >= 0);
    sum += share;
  }
  R2CC_CHECK(segments >= 1 && sum > 0);
  double before = 0;
  for (const double share : shares) {
    up_to_.push_back(before / sum);
    before += share;
  }
}

uint64_t Shares::Cut(uint32_t block) const {
  if (even()) return EvenPiece(bytes_, block, segments_).begin;
  const auto pieces = static_cast<uint32_t>(up_to_.size());
  const Range segment = EvenPiece(bytes_, block / pieces, segments_);
  const auto offset = static_cast<uint64_t>(static_cast<double>(segment.bytes() / kElementBytes) * up_to_[block % pieces] + 0.5);
  return std::min(segment.begin + offset * kElementBytes, segment.end);
}

}  // namespace r2cc::plan
