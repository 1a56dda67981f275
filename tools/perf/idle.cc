#include "tools/perf/idle.h"

#include <sched.h>
#include <time.h>

namespace r2cc::perf {

void Wait(const Idle& idle, int rounds) {
  if (rounds > idle.yields && idle.sleep_us > 0) {
    const timespec duration{0, idle.sleep_us * 1000L};
    nanosleep(&duration, nullptr);
  } else {
    sched_yield();
  }
}

}  // namespace r2cc::perf
