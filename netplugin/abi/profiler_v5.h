// Profiler plugin table of version 5, exported as ncclProfiler_v5. NCCL 2.28. The type is wide. Versions 6 (NCCL 2.29) and 7 (NCCL 2.31)
// have the same fields that are read: they add events, and fields behind those here.
#ifndef R2CC_NETPLUGIN_ABI_PROFILER_V5_H_
#define R2CC_NETPLUGIN_ABI_PROFILER_V5_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/profiler_v1.h"
#include "netplugin/abi/profiler_v4.h"

namespace r2cc::abi {

struct ProfilerEventV5 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    ProfilerCollV4 coll;
    ProfilerP2pV4 p2p;
    ProfilerProxyOp proxy_op;
  };
};
static_assert(offsetof(ProfilerEventV5, parent) == 8 && offsetof(ProfilerEventV5, rank) == 16 && offsetof(ProfilerEventV5, coll) == 24);

struct ProfilerTableV5 {
  const char* name;
  Result (*init)(void** context, uint64_t communicator, int* mask, const char* comm_name, int nodes, int ranks, int rank, Logger log);
  Result (*start_event)(void* context, void** event, ProfilerEventV5* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_event_state)(void* event, int state, void* arguments);
  Result (*finalize)(void* context);
};
static_assert(sizeof(ProfilerTableV5) == 6 * sizeof(void*) && offsetof(ProfilerTableV5, finalize) == 5 * sizeof(void*));
using ProfilerTableV6 = ProfilerTableV5;
using ProfilerTableV7 = ProfilerTableV5;

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_PROFILER_V5_H_
