#include "base/core/clock.h"

#include <ctime>

namespace r2cc {

Nanos SteadyClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanos>(now.tv_sec) * kNanosPerSecond + now.tv_nsec;
}

}  // namespace r2cc
