// Fills the inputs of a run's collectives, and checks their results.
//
// Without --random the values are exact in every sum and differ in each iteration (pattern.h). With it they are rounded in nearly every sum
// and are the same in each iteration (random_values.h): all results must be correct up to rounding, and equal to the bit.
#ifndef R2CC_TOOLS_PERF_VALUES_H_
#define R2CC_TOOLS_PERF_VALUES_H_

#include <cstdint>

#include "tools/perf/conductor.h"
#include "tools/perf/options.h"

namespace r2cc::perf {

// One thread at a time. Without checks it does nothing.
class Values {
 public:
  Values(const Options& options, int rank) : options_(options), rank_(rank) {}

  // Before an iteration. `elements`: float32 that input and output hold.
  void Fill(float* input, float* output, int64_t elements, uint32_t iteration) const;
  // After it: sets the report's fields about the result.
  void Judge(const float* output, int64_t count, uint32_t iteration, Report* report);

 private:
  const Options options_;
  const int rank_;
  uint64_t right_hash_ = 0;  // of a result that was checked; 0: none yet
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_VALUES_H_
