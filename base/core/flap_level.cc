#include "base/core/flap_level.h"

#include <algorithm>

namespace r2cc {

void FlapLevel::Count(Nanos now) {
  const auto forgiven = static_cast<uint32_t>(std::min<Nanos>((now - last_) / decay_, level_));
  level_ = std::min(level_ - forgiven + 1, level_max_);
  last_ = now;
}

Nanos FlapLevel::ProofTime(Nanos shortest, Nanos longest) const {
  Nanos proof = shortest;
  for (uint32_t level = 1; level < level_ && proof < longest; ++level) proof *= 2;
  return std::min(proof, longest);
}

}  // namespace r2cc
