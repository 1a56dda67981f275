// Defines the memory layout of the interface between libnccl-profiler-r2cc.so and the plugin, which combine what they know. A change of
// layout gets a new name.
#ifndef R2CC_NETPLUGIN_ABI_PROFILE_V1_H_
#define R2CC_NETPLUGIN_ABI_PROFILE_V1_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::abi {

// An operation of NCCL that waited. Texts are printable ASCII and end with a NUL.
struct HeldOperationV1 {
  uint64_t communicator;  // NCCL's commId
  int64_t held_ns;        // how much of the requested time it was outstanding
  int32_t rank;           // of this process in the communicator
  int32_t ranks;          // of the communicator; 0: not known
  uint32_t number;        // of the function in the communicator, from 1, equal on all ranks; 0: NCCL has none
  uint32_t reserved;
  char function[24];           // "AllReduce", "Send to 3"
  char communicator_name[64];  // empty: it has none
};
static_assert(sizeof(HeldOperationV1) == 120 && offsetof(HeldOperationV1, function) == 32);

// The operations that were outstanding from `begun_ns` to `ended_ns` (CLOCK_MONOTONIC), the longest first, at most `most`. Returns their
// number. `communicator`: only that one; 0: any. Any thread; never blocks for long, and calls no other function of the plugin.
using HeldOperationsV1 = size_t (*)(uint64_t communicator, int64_t begun_ns, int64_t ended_ns, HeldOperationV1* held, size_t most);

// `r2cc_profile_v1` of libnccl-net-r2cc.so. Any thread; starts nothing.
struct ProfileTableV1 {
  // From now on the plugin calls `held` after each stall. 0, and nothing changes: it calls another one already.
  int (*ask)(HeldOperationsV1 held);
};
static_assert(sizeof(ProfileTableV1) == sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_PROFILE_V1_H_
