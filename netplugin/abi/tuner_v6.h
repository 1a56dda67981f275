// Tuner plugin table of version 6, exported as ncclTunerPlugin_v6. NCCL 2.30. The tuner may change the chunk size that NCCL chose.
#ifndef R2CC_NETPLUGIN_ABI_TUNER_V6_H_
#define R2CC_NETPLUGIN_ABI_TUNER_V6_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/tuner_v5.h"

namespace r2cc::abi {

struct TunerTableV6 {
  const char* name;
  Result (*init)(void** ctx, uint64_t comm_id, size_t nranks, size_t nnodes, Logger log, NvlDomainInfoV5* domains,
                 TunerConstantsV5* constants);
  // `cost` as in v3.
  Result (*get_coll_info)(void* ctx, Function function, size_t bytes, int pipe_ops, float** cost, int algorithms, int protocols,
                          int registered, int* nchannels);
  Result (*finalize)(void* ctx);
  // May be NULL.
  Result (*get_chunk_size)(void* ctx, Function function, size_t bytes, int algorithm, int protocol, int nchannels, size_t* chunk_bytes);
};
static_assert(sizeof(TunerTableV6) == 5 * sizeof(void*) && offsetof(TunerTableV6, get_chunk_size) == 4 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_TUNER_V6_H_
