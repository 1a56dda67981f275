// Vectors of 16 bytes, which every processor that we know of has in its baseline.
#define R2CC_VECTOR_BYTES 16
#define R2CC_HALVES_BY_HARDWARE 0
#include "netplugin/collnet/reduce_kernels.h"

namespace r2cc::collnet {

extern constexpr ReduceTable kPortableReduceTable = kTable;

}  // namespace r2cc::collnet
