// Measures how often something failed lately. It decides how long a repaired NIC or path must prove itself. Pure: time is an argument.
#ifndef R2CC_BASE_CORE_FLAP_LEVEL_H_
#define R2CC_BASE_CORE_FLAP_LEVEL_H_

#include <cstdint>

#include "base/core/clock.h"

namespace r2cc {

class FlapLevel {
 public:
  // Each failure adds one to the level, up to `level_max`. One is forgiven for each `decay` that passes without a failure.
  FlapLevel(Nanos decay, uint32_t level_max) : decay_(decay), level_max_(level_max) {}

  // It failed. REQUIRES: `now` does not go back.
  void Count(Nanos now);

  // `shortest` up to the first failure, doubled with each further one, and at most `longest`. The level is as of the last failure: what
  // passed since is forgiven when the next one is counted.
  Nanos ProofTime(Nanos shortest, Nanos longest) const;

  uint32_t level() const { return level_; }

 private:
  const Nanos decay_;
  const uint32_t level_max_;
  uint32_t level_ = 0;
  Nanos last_ = 0;  // the last failure
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_FLAP_LEVEL_H_
