// How a progress loop waits when nothing moves.
#ifndef R2CC_TOOLS_PERF_IDLE_H_
#define R2CC_TOOLS_PERF_IDLE_H_

#include <cstdint>

namespace r2cc::perf {

// Ranks often share cores with each other and with the plugin's own threads.
struct Idle {
  int yields = 20;         // rounds of sched_yield() before it sleeps
  int sleep_us = 30;       // 0: only ever yields, as NCCL's own loop does
  int64_t timeout_ns = 0;  // 0: none. With nothing completed for so long the run fails
};

// After so many rounds in which nothing moved.
void Wait(const Idle& idle, int rounds);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_IDLE_H_
