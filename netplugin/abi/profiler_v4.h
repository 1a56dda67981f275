// Profiler plugin table of version 4, exported as ncclProfiler_v4. NCCL 2.27. NCCL describes a communicator once, as it begins.
#ifndef R2CC_NETPLUGIN_ABI_PROFILER_V4_H_
#define R2CC_NETPLUGIN_ABI_PROFILER_V4_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/profiler_v1.h"

namespace r2cc::abi {

struct ProfilerCollV4 {
  uint64_t sequence;
  const char* function;
};
static_assert(offsetof(ProfilerCollV4, function) == 8);

struct ProfilerP2pV4 {
  const char* function;
  void* buffer;
  const char* type;
  size_t count;
  int peer;
};
static_assert(offsetof(ProfilerP2pV4, peer) == 32);

struct ProfilerEventV4 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    ProfilerCollV4 coll;
    ProfilerP2pV4 p2p;
    ProfilerProxyOp proxy_op;
  };
};
static_assert(offsetof(ProfilerEventV4, parent) == 8 && offsetof(ProfilerEventV4, rank) == 16 && offsetof(ProfilerEventV4, coll) == 24);

struct ProfilerTableV4 {
  const char* name;
  // `communicator`: the commId of the net table.
  Result (*init)(void** context, int* mask, const char* comm_name, uint64_t communicator, int nodes, int ranks, int rank, Logger log);
  Result (*start_event)(void* context, void** event, ProfilerEventV4* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_event_state)(void* event, int state, void* arguments);
  Result (*finalize)(void* context);
};
static_assert(sizeof(ProfilerTableV4) == 6 * sizeof(void*) && offsetof(ProfilerTableV4, finalize) == 5 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_PROFILER_V4_H_
