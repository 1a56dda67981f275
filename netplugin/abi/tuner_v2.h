// Tuner plugin table of version 2, exported as ncclTunerPlugin_v2. NCCL 2.21; later ones read it if nothing newer is exported.
//
// NCCL asks before it chooses. algorithm and protocol come in as -1 and nChannels as 0, "no opinion"; a tuner sets the first two together
// or neither. In every version: an error ends the collective, and ranks that answer differently hang.
#ifndef R2CC_NETPLUGIN_ABI_TUNER_V2_H_
#define R2CC_NETPLUGIN_ABI_TUNER_V2_H_

#include <cstddef>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct TunerTableV2 {
  const char* name;
  Result (*init)(size_t nranks, size_t nnodes, Logger log, void** ctx);
  Result (*get_coll_info)(void* ctx, Function function, size_t bytes, int collnet_support, int nvls_support, int pipe_ops, int* algorithm,
                          int* protocol, int* nchannels);
  Result (*destroy)(void* ctx);
};
static_assert(sizeof(TunerTableV2) == 4 * sizeof(void*) && offsetof(TunerTableV2, destroy) == 3 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_TUNER_V2_H_
