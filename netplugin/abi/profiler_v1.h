// Profiler plugin table of version 1, exported as ncclProfiler_v1. NCCL 2.23. A function is a number.
//
// The descriptors have only the fields that are read: NCCL's own may be longer, and are never copied.
#ifndef R2CC_NETPLUGIN_ABI_PROFILER_V1_H_
#define R2CC_NETPLUGIN_ABI_PROFILER_V1_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

// ncclProfile*: an event's type, and the bits of an activation mask.
constexpr uint64_t kProfileGroup = 0x1;
constexpr uint64_t kProfileColl = 0x2;
constexpr uint64_t kProfileP2p = 0x4;
constexpr uint64_t kProfileProxyOp = 0x8;

// ncclProfilerEventDescr's proxyOp: the same in all versions. What one channel moves to or from one peer.
struct ProfilerProxyOp {
  int32_t pid;  // the process that has the operation
  uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};
static_assert(sizeof(ProfilerProxyOp) == 24 && offsetof(ProfilerProxyOp, peer) == 8);

struct ProfilerCollV1 {
  const char* name;  // the communicator's
  uint64_t communicator;
  uint64_t sequence;
  uint8_t function;  // ncclFunc_t
};
static_assert(offsetof(ProfilerCollV1, function) == 24);

struct ProfilerP2pV1 {
  const char* name;
  uint64_t communicator;
  uint8_t function;
  void* buffer;
  uint8_t type;
  size_t count;
  int peer;
};
static_assert(offsetof(ProfilerP2pV1, peer) == 48);

struct ProfilerEventV1 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    ProfilerCollV1 coll;
    ProfilerP2pV1 p2p;
    ProfilerProxyOp proxy_op;
  };
};
static_assert(offsetof(ProfilerEventV1, parent) == 8 && offsetof(ProfilerEventV1, rank) == 16 && offsetof(ProfilerEventV1, coll) == 24);

struct ProfilerTableV1 {
  const char* name;
  Result (*init)(void** context, int* mask);
  Result (*start_event)(void* context, void** event, ProfilerEventV1* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_event_state)(void* event, int state, void* arguments);
  Result (*finalize)(void* context);
};
static_assert(sizeof(ProfilerTableV1) == 6 * sizeof(void*) && offsetof(ProfilerTableV1, finalize) == 5 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_PROFILER_V1_H_
