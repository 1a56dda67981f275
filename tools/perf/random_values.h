// Generates the data of --random: values of either sign and of several sizes, with whole mantissas. Nearly every sum of them is rounded, so
// its last bits show the order of the additions.
#ifndef R2CC_TOOLS_PERF_RANDOM_VALUES_H_
#define R2CC_TOOLS_PERF_RANDOM_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::perf {

// The types that these functions support: kFloat32, kFloat16 and kBfloat16.
size_t BytesOf(abi::DataType type);

// A rank's whole input: the same for the same seed, in every iteration.
void FillRandom(void* input, int64_t elements, abi::DataType type, uint64_t seed, int rank);

// How many elements are further from the sum over `ranks` inputs than any order of additions may leave them.
int64_t CountFar(const void* output, int64_t elements, abi::DataType type, uint64_t seed, int ranks);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_RANDOM_VALUES_H_
