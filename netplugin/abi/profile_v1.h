// By what libnccl-profiler-r2cc.so and the plugin join what they know, as it lies in memory. A change of layout is another name.
#ifndef R2CC_NETPLUGIN_ABI_PROFILE_V1_H_
#define R2CC_NETPLUGIN_ABI_PROFILE_V1_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::abi {

// An operation of NCCL that waited. Texts are printable ASCII and end with a NUL.
struct HeldOperationV1 {
  uint64_t communicator;  // NCCL's commId
  int64_t held_ns;        // so long of the time that was asked about
  int32_t rank;           // of this process in the communicator
  int32_t ranks;          // of the communicator; 0: not known
  uint32_t number;        // of the function in the communicator, from 1, equal on all ranks; 0: NCCL has none
  uint32_t reserved;
  char function[24];           // "AllReduce", "Send to 3"
  char communicator_name[64];  // empty: it has none
};
static_assert(sizeof(HeldOperationV1) == 120 && offsetof(HeldOperationV1, function) == 32);

// The operations that were outstanding from `begun_ns` to `ended_ns` (CLOCK_MONOTONIC), the longest first, at most `most`. Returns how
// many. `communicator`: of that one alone; 0: of any. Any thread; never blocks for long, and calls nobody.
using HeldOperationsV1 = size_t (*)(uint64_t communicator, int64_t begun_ns, int64_t ended_ns, HeldOperationV1* held, size_t most);

// `r2cc_profile_v1` of libnccl-net-r2cc.so. Any thread; nothing is started.
struct ProfileTableV1 {
  // From now on the plugin asks `held` after each stall. 0, and nothing changes: it asks another one already.
  int (*ask)(HeldOperationsV1 held);
};
static_assert(sizeof(ProfileTableV1) == sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_PROFILE_V1_H_
