#include "netplugin/collnet/reduce_table.h"

// clang takes no target pragma: what it builds runs the portable kernels.
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,f16c")
#define R2CC_VECTOR_BYTES 32
#define R2CC_HALVES_BY_HARDWARE 1
#include "netplugin/collnet/reduce_kernels.h"

namespace r2cc::collnet {

extern constexpr const ReduceTable* const kAvx2ReduceTable = &kTable;

}  // namespace r2cc::collnet
#else
namespace r2cc::collnet {

extern constexpr const ReduceTable* const kAvx2ReduceTable = nullptr;

}  // namespace r2cc::collnet
#endif
