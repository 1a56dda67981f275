// Lists the kernels of one instruction set. Nothing here may be instantiated with more than the baseline's instructions: see
// reduce_kernels.h.
#ifndef R2CC_NETPLUGIN_COLLNET_REDUCE_TABLE_H_
#define R2CC_NETPLUGIN_COLLNET_REDUCE_TABLE_H_

#include <cstddef>

namespace r2cc::collnet {

using ReduceKernel = void (*)(const std::byte* const* sources, size_t sources_count, std::byte* out, size_t count);

constexpr int kReduceTypes = 10;  // ncclDataType_t, up to bf16
constexpr int kReduceOps = 4;     // ncclRedOp_t, without the average

struct ReduceTable {
  ReduceKernel kernels[kReduceTypes][kReduceOps];
};

extern const ReduceTable kPortableReduceTable;
// Null if this build does not have it.
extern const ReduceTable* const kAvx2ReduceTable;
extern const ReduceTable* const kAvx512ReduceTable;

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_REDUCE_TABLE_H_
