// Waits in a progress loop when nothing moves.
#ifndef R2CC_TOOLS_PERF_IDLE_H_
#define R2CC_TOOLS_PERF_IDLE_H_

#include <cstdint>

namespace r2cc::perf {

// Ranks often share cores with each other and with the plugin's own threads.
struct Idle {
  int yields = 20;         // rounds of sched_yield() before it sleeps
  int sleep_us = 30;       // 0: never sleeps, as NCCL's own loop
  int64_t timeout_ns = 0;  // 0: none. If nothing completes for this time the run fails
};

// Call after `rounds` rounds in which nothing moved.
void Wait(const Idle& idle, int rounds);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_IDLE_H_
