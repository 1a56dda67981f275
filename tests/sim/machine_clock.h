// The monotonic clock of one machine, as a function of the world's time: it began earlier, and runs a little fast or slow.
#ifndef R2CC_TESTS_SIM_MACHINE_CLOCK_H_
#define R2CC_TESTS_SIM_MACHINE_CLOCK_H_

#include "base/core/clock.h"

namespace r2cc::sim {

struct MachineClock {
  Nanos ahead = 0;
  int64_t drift_ppm = 0;

  Nanos At(Nanos world) const { return world + world / kMillion * drift_ppm + world % kMillion * drift_ppm / kMillion + ahead; }
  // When it first shows `local`, or later.
  Nanos When(Nanos local) const {
    const Nanos since = local - ahead;
    Nanos world = since - since / (kMillion + drift_ppm) * drift_ppm - since % (kMillion + drift_ppm) * drift_ppm / (kMillion + drift_ppm);
    while (At(world) < local) ++world;
    return world;
  }

 private:
  static constexpr Nanos kMillion = 1'000'000;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_MACHINE_CLOCK_H_
