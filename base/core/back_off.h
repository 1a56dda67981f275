// Computes the wait before the next attempt at something that failed. Pure.
#ifndef R2CC_BASE_CORE_BACK_OFF_H_
#define R2CC_BASE_CORE_BACK_OFF_H_

#include <algorithm>

#include "base/core/clock.h"

namespace r2cc {

class ExponentialBackOff {
 public:
  ExponentialBackOff(Nanos shortest, Nanos longest) : shortest_(shortest), longest_(longest), next_(shortest) {}

  // The wait after one more failure: `shortest` at first, then twice the one before, and at most `longest`.
  Nanos Next() {
    const Nanos wait = next_;
    next_ = std::min(2 * next_, longest_);
    return wait;
  }
  // It succeeded: the next failure is a first one.
  void Reset() { next_ = shortest_; }

 private:
  Nanos shortest_;
  Nanos longest_;
  Nanos next_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_BACK_OFF_H_
