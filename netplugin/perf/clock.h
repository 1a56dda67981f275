// CLOCK_MONOTONIC in nanoseconds: comparable between all processes of one machine.
#ifndef R2CC_NETPLUGIN_PERF_CLOCK_H_
#define R2CC_NETPLUGIN_PERF_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace r2cc::perf {

inline int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

}  // namespace r2cc::perf

#endif  // R2CC_NETPLUGIN_PERF_CLOCK_H_
