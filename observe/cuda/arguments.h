// The arguments that the kernels of step.cu get by value: a captured graph keeps its own copy. For the host, too.
#ifndef R2CC_OBSERVE_CUDA_ARGUMENTS_H_
#define R2CC_OBSERVE_CUDA_ARGUMENTS_H_

#include <cstdint>

#include "observe/gather/flat_taps.h"
#include "observe/gather/step.h"

namespace r2cc::observe {

// The first is within 4,096 bytes, which every driver takes; the second within 32,764, for CUDA 12.1 and later.
constexpr uint32_t kTapsOfSmallLaunch = 32, kTapsOfLargeLaunch = 280;

// The same for flat taps. A step has mostly less, and a graph copies all parameters, so the second is smaller than it might be.
constexpr uint32_t kTapsOfSmallFlatLaunch = 112, kTapsOfLargeFlatLaunch = 480;

template <typename T, uint32_t kTaps>
struct ArgumentsOf {
  StepParameters step;  // its `taps` counts for nothing
  T taps[kTaps];
};
using SmallArguments = ArgumentsOf<StepTap, kTapsOfSmallLaunch>;
using LargeArguments = ArgumentsOf<StepTap, kTapsOfLargeLaunch>;
using SmallFlatArguments = ArgumentsOf<FlatTap, kTapsOfSmallFlatLaunch>;
using LargeFlatArguments = ArgumentsOf<FlatTap, kTapsOfLargeFlatLaunch>;
static_assert(sizeof(SmallArguments) <= 4096 && sizeof(SmallFlatArguments) <= 4096);
static_assert(sizeof(LargeArguments) <= 32764 && sizeof(LargeFlatArguments) <= 32764);

constexpr uint32_t kThreads = 256;  // of a block
// The blocks of flat taps that run at once on each of the GPU's processors.
constexpr uint32_t kFlatBlocksOfProcessor = 4;

// The kernels, by their names.
constexpr const char kGatherSmall[] = "r2cc_observe_gather_small";  // SmallArguments
constexpr const char kGatherLarge[] = "r2cc_observe_gather_large";  // LargeArguments
constexpr const char kFlatSmall[] = "r2cc_observe_flat_small";      // SmallFlatArguments
constexpr const char kFlatLarge[] = "r2cc_observe_flat_large";      // LargeFlatArguments
constexpr const char kInline[] = "r2cc_observe_inline";             // SmallArguments
constexpr const char kRows[] = "r2cc_observe_rows";                 // SmallArguments: one block
constexpr const char kWait[] = "r2cc_observe_wait";                 // SmallArguments: one block
constexpr const char kHash[] = "r2cc_observe_hash";                 // SmallArguments: adds to `hashes`

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_CUDA_ARGUMENTS_H_
