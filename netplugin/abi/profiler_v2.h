// Profiler plugin table of version 2, exported as ncclProfiler_v2. NCCL 2.24 and 2.25. A function is a text. Version 3 (NCCL 2.26) has the
// same fields that are read.
#ifndef R2CC_NETPLUGIN_ABI_PROFILER_V2_H_
#define R2CC_NETPLUGIN_ABI_PROFILER_V2_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/profiler_v1.h"

namespace r2cc::abi {

struct ProfilerCollV2 {
  const char* name;  // the communicator's
  uint64_t communicator;
  uint64_t sequence;
  const char* function;
};
static_assert(offsetof(ProfilerCollV2, function) == 24);

struct ProfilerP2pV2 {
  const char* name;
  uint64_t communicator;
  const char* function;
  void* buffer;
  const char* type;
  size_t count;
  int peer;
};
static_assert(offsetof(ProfilerP2pV2, peer) == 48);

struct ProfilerEventV2 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    ProfilerCollV2 coll;
    ProfilerP2pV2 p2p;
    ProfilerProxyOp proxy_op;
  };
};
static_assert(offsetof(ProfilerEventV2, parent) == 8 && offsetof(ProfilerEventV2, rank) == 16 && offsetof(ProfilerEventV2, coll) == 24);

struct ProfilerTableV2 {
  const char* name;
  Result (*init)(void** context, int* mask);
  Result (*start_event)(void* context, void** event, ProfilerEventV2* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_event_state)(void* event, int state, void* arguments);
  Result (*finalize)(void* context);
};
static_assert(sizeof(ProfilerTableV2) == 6 * sizeof(void*) && offsetof(ProfilerTableV2, finalize) == 5 * sizeof(void*));
using ProfilerTableV3 = ProfilerTableV2;

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_PROFILER_V2_H_
