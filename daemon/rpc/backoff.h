// How long to wait before the next attempt to connect.
#ifndef R2CC_DAEMON_RPC_BACKOFF_H_
#define R2CC_DAEMON_RPC_BACKOFF_H_

#include <algorithm>

#include "base/core/clock.h"

namespace r2cc::daemon {

// 100 ms, doubled up to 2 s, for ever.
class Backoff {
 public:
  Nanos Next() {
    const Nanos delay = delay_;
    delay_ = std::min(2 * delay_, kMax);
    return delay;
  }
  void Reset() { delay_ = kMin; }

 private:
  static constexpr Nanos kMin = 100 * kNanosPerMs;
  static constexpr Nanos kMax = 2 * kNanosPerSecond;
  Nanos delay_ = kMin;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_BACKOFF_H_
