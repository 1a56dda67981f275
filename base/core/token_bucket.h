// A rate with a burst: tokens that come back with time. Pure.
#ifndef R2CC_BASE_CORE_TOKEN_BUCKET_H_
#define R2CC_BASE_CORE_TOKEN_BUCKET_H_

#include <algorithm>

#include "base/core/clock.h"

namespace r2cc {

class TokenBucket {
 public:
  TokenBucket(int per_second, int burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}
  int per_second() const { return per_second_; }
  int burst() const { return burst_; }

  // Takes one; false: none is left at `now`.
  bool Take(Nanos now) { return TakeUpTo(1, now) == 1; }
  // Takes `most`, or as many as there are.
  int TakeUpTo(int most, Nanos now) {
    if (now > last_) {
      tokens_ = std::min<double>(burst_, tokens_ + static_cast<double>(now - last_) / kNanosPerSecond * per_second_);
      last_ = now;
    }
    const int taken = std::min(most, static_cast<int>(tokens_));
    tokens_ -= taken;
    return taken;
  }
  // Those that were taken and not used.
  void GiveBack(int tokens) { tokens_ = std::min<double>(burst_, tokens_ + tokens); }
  // How long until there is one.
  Nanos Until() const { return tokens_ >= 1 ? 0 : static_cast<Nanos>((1 - tokens_) / per_second_ * kNanosPerSecond) + 1; }

 private:
  int per_second_;
  int burst_;
  double tokens_;
  Nanos last_ = 0;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_TOKEN_BUCKET_H_
