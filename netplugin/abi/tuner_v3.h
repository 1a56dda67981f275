// Tuner plugin table of version 3, exported as ncclTunerPlugin_v3. NCCL 2.22 and 2.23. The tuner gets NCCL's estimates, and may change
// them.
#ifndef R2CC_NETPLUGIN_ABI_TUNER_V3_H_
#define R2CC_NETPLUGIN_ABI_TUNER_V3_H_

#include <cstddef>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct TunerTableV3 {
  const char* name;
  Result (*init)(size_t nranks, size_t nnodes, Logger log, void** ctx);
  // `cost` is a float[algorithms][protocols] in microseconds, although its type differs. kCostIgnored: that way is not allowed. NCCL takes
  // the least of the others.
  Result (*get_coll_info)(void* ctx, Function function, size_t bytes, int pipe_ops, float** cost, int algorithms, int protocols,
                          int* nchannels);
  Result (*destroy)(void* ctx);
};
static_assert(sizeof(TunerTableV3) == 4 * sizeof(void*) && offsetof(TunerTableV3, destroy) == 3 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_TUNER_V3_H_
