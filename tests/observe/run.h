// One seed: producers on a fake device, copy threads, readers of all kinds, in one order of their steps; and what must hold in the end.
#ifndef R2CC_TESTS_OBSERVE_RUN_H_
#define R2CC_TESTS_OBSERVE_RUN_H_

#include <cstdint>
#include <string>

namespace r2cc::observe {

struct RunResult {
  std::string failure;  // empty: all is right
  uint64_t steps = 0, records_read = 0;
  uint64_t dropped_device = 0, dropped_host = 0, unwanted = 0;
  uint64_t wraps = 0, cut_off = 0, lied = 0, stubs = 0, at_points = 0, flat_taps = 0, waited = 0, failed_copies = 0;
};
RunResult RunSeed(uint64_t seed);

}  // namespace r2cc::observe

#endif  // R2CC_TESTS_OBSERVE_RUN_H_
