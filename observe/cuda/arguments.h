// What the kernels of step.cu get by value: a captured graph keeps its own copy. For the host, too.
#ifndef R2CC_OBSERVE_CUDA_ARGUMENTS_H_
#define R2CC_OBSERVE_CUDA_ARGUMENTS_H_

#include <cstdint>

#include "observe/gather/step.h"

namespace r2cc::observe {

// The first is within 4,096 bytes, which every driver takes; the second within 32,764, for CUDA 12.1 and later.
constexpr uint32_t kTapsOfSmallLaunch = 32, kTapsOfLargeLaunch = 280;

template <uint32_t kTaps>
struct ArgumentsOf {
  StepParameters step;  // its `taps` counts for nothing
  StepTap taps[kTaps];
};
using SmallArguments = ArgumentsOf<kTapsOfSmallLaunch>;
using LargeArguments = ArgumentsOf<kTapsOfLargeLaunch>;
static_assert(sizeof(SmallArguments) <= 4096);
static_assert(sizeof(LargeArguments) <= 32764);

constexpr uint32_t kThreads = 256;  // of a block

// The kernels, by their names.
constexpr const char kGatherSmall[] = "r2cc_observe_gather_small";  // SmallArguments
constexpr const char kGatherLarge[] = "r2cc_observe_gather_large";  // LargeArguments
constexpr const char kInline[] = "r2cc_observe_inline";             // SmallArguments
constexpr const char kRows[] = "r2cc_observe_rows";                 // SmallArguments: one block
constexpr const char kWait[] = "r2cc_observe_wait";                 // SmallArguments: one block
constexpr const char kHash[] = "r2cc_observe_hash";                 // SmallArguments: adds to `hashes`

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_CUDA_ARGUMENTS_H_
