// What a kernel of reduce_kernels.cu is launched with. For C++ and CUDA alike.
#ifndef R2CC_NETPLUGIN_GPU_REDUCE_PARAMETERS_H_
#define R2CC_NETPLUGIN_GPU_REDUCE_PARAMETERS_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::gpu {

constexpr uint32_t kReduceSourcesMax = 500;
// One vector that a thread loads.
constexpr uint32_t kReduceVectorBytes = 16;

struct ReduceParameters {
  std::byte* out;
  uint64_t count;    // elements
  uint32_t sources;  // 1 to kReduceSourcesMax
  uint32_t aligned;  // 1: all addresses are multiples of kReduceVectorBytes
  const std::byte* source[kReduceSourcesMax];
};
static_assert(sizeof(ReduceParameters) <= 4096);

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_REDUCE_PARAMETERS_H_
