// Tuner plugin table of version 4, exported as ncclTunerPlugin_v4. NCCL 2.24 to 2.27. NCCL passes whether the buffers are registered.
#ifndef R2CC_NETPLUGIN_ABI_TUNER_V4_H_
#define R2CC_NETPLUGIN_ABI_TUNER_V4_H_

#include <cstddef>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct TunerTableV4 {
  const char* name;
  Result (*init)(size_t nranks, size_t nnodes, Logger log, void** ctx);
  // `cost` as in v3.
  Result (*get_coll_info)(void* ctx, Function function, size_t bytes, int pipe_ops, float** cost, int algorithms, int protocols,
                          int registered, int* nchannels);
  Result (*destroy)(void* ctx);
};
static_assert(sizeof(TunerTableV4) == 4 * sizeof(void*) && offsetof(TunerTableV4, destroy) == 3 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_TUNER_V4_H_
