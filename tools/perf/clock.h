// Reads CLOCK_MONOTONIC in nanoseconds, comparable between all processes of one machine, and the process's CPU time.
#ifndef R2CC_TOOLS_PERF_CLOCK_H_
#define R2CC_TOOLS_PERF_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace r2cc::perf {

inline int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

// User and system time of this process, all threads.
inline int64_t ProcessCpuNs() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{1'000'000'000} * used.tv_sec + used.tv_nsec;
}

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_CLOCK_H_
