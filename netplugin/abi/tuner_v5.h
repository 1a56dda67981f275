// Tuner plugin table of version 5, exported as ncclTunerPlugin_v5. NCCL 2.28 and 2.29. The communicator has a name, and the constants of
// NCCL's model can be changed before it is made.
#ifndef R2CC_NETPLUGIN_ABI_TUNER_V5_H_
#define R2CC_NETPLUGIN_ABI_TUNER_V5_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

// ncclNvlDomainInfo_v5_t.
struct NvlDomainInfoV5 {
  int domains;
  int min_ranks_per_domain;
  int max_ranks_per_domain;
};
static_assert(sizeof(NvlDomainInfoV5) == 12 && offsetof(NvlDomainInfoV5, max_ranks_per_domain) == 8);

// ncclTunerConstants_v5_t: in and out. By algorithm and protocol, by kind of wire, and by compute capability and scale.
struct TunerConstantsV5 {
  double base_latencies[7][3];
  double hw_latencies[3][7][3];
  double ll_max_bandwidths[4][3];
  double per_channel_max_ring_ll128_bandwidths[4][3];
  double per_channel_max_tree_ll128_bandwidths[4][3];
  double per_channel_max_tree_bandwidths[4][3];
  double per_channel_max_nvls_tree_bandwidths[4][3];
};
static_assert(sizeof(TunerConstantsV5) == 1152);
static_assert(offsetof(TunerConstantsV5, hw_latencies) == 168 && offsetof(TunerConstantsV5, ll_max_bandwidths) == 672);

struct TunerTableV5 {
  const char* name;
  Result (*init)(void** ctx, uint64_t comm_id, size_t nranks, size_t nnodes, Logger log, NvlDomainInfoV5* domains,
                 TunerConstantsV5* constants);
  // `cost` as in v3.
  Result (*get_coll_info)(void* ctx, Function function, size_t bytes, int pipe_ops, float** cost, int algorithms, int protocols,
                          int registered, int* nchannels);
  Result (*finalize)(void* ctx);
};
static_assert(sizeof(TunerTableV5) == 4 * sizeof(void*) && offsetof(TunerTableV5, finalize) == 3 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_TUNER_V5_H_
