// Generates and checks the data of a run: small integers, exact in float32 and in every partial sum, that depend on rank, iteration and
// index. Equal or slowly varying values would hide slices that were swapped, repeated, or left over from the previous iteration.
#ifndef R2CC_TOOLS_PERF_PATTERN_H_
#define R2CC_TOOLS_PERF_PATTERN_H_

#include <cstddef>
#include <cstdint>

#include "tools/perf/schedule.h"

namespace r2cc::perf {

constexpr int kRanksMax = 4096;  // beyond it sums of useful width are no longer exact

// The value that rank `rank` contributes at `index` in iteration `iteration`. Every partial sum of `ranks` such values is below 2^24.
float ValueAt(int rank, int ranks, uint32_t iteration, uint32_t index);

// Fills a rank's whole input.
void FillInput(float* input, int64_t elements, int rank, int ranks, uint32_t iteration);

// How many elements of a rank's output differ from the collective's correct result.
int64_t CountWrong(Collective collective, const float* output, int64_t count, int rank, int ranks, uint32_t iteration);

// value = received (if any) + input (if any), to output (if any) and send (if any). The arrays do not overlap.
void Combine(const float* received, const float* input, float* output, float* send, int64_t elements);

// Fills slots that must not be used any more. As a float it is so large that a single one spoils every sum.
constexpr uint32_t kGuardWord = 0x7BADF00D;

// Bytes are filled up to the next multiple of 4; `memory` must hold them.
void FillGuard(void* memory, size_t bytes);
bool GuardIntact(const void* memory, size_t bytes);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_PATTERN_H_
