// The common part of the versions of NCCL's profiler table: one function per entry. The versions differ only in the shapes of their
// arguments (tables.cc). Any thread. Nothing is started, nothing is thrown, and each call succeeds: NCCL goes on without a profiler in ways
// that differ by its version. A handle is a number and never a pointer: NCCL may give back one of another process (PXN), or one twice.
#ifndef R2CC_NCCL_PROFILER_PROFILER_H_
#define R2CC_NCCL_PROFILER_PROFILER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "nccl/profiler/operation_log.h"
#include "netplugin/abi/profiler_v1.h"

namespace r2cc::profiler {

constexpr char kProfilerName[] = "R2CC";

// The events that are requested. The parts of an operation are the only events that NCCL's progress threads give: two calls for each
// channel and peer. No event of a GPU's channel is there, as these start a thread in NCCL.
constexpr uint64_t kMask = abi::kProfileColl | abi::kProfileP2p | abi::kProfileProxyOp;

// A descriptor of any version.
struct Event {
  uint64_t type = 0;
  void* parent = nullptr;
  // Fields of an operation.
  const char* function = nullptr;
  uint32_t number = 0;
  int peer = OperationLog::kNoPeer;
  // Before v4 NCCL gives the communicator with each operation.
  bool names_communicator = false;
  uint64_t communicator = 0;
  const char* communicator_name = nullptr;
  int rank = 0;
  // Fields of a part.
  int32_t pid = 0;
};

class Profiler {
 public:
  // The clock outlives it. `pid`: of this process. `first`: the first operation's id, of which a handle has room for 61 bits.
  Profiler(const Clock* clock, int32_t pid, OperationId first);

  // A communicator begins: the number of its context, and the mask. `joined`: the plugin asks this profiler; else no event is asked for.
  void Open(OperationLog::Communicator communicator, bool joined, void** context, int* mask);
  void Start(void* context, void** handle, const Event& event);
  void Stop(void* handle);
  void Close(void* context);
  // See abi/profile_v1.h.
  size_t HeldOperations(uint64_t communicator, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held);

 private:
  Mutex mutex_;

  OperationId Begin(uint64_t context, const Event& event) R2CC_REQUIRES(mutex_);

  const Clock* const clock_;
  const int32_t pid_;
  OperationLog log_ R2CC_GUARDED_BY(mutex_);
};

// ncclFunc_t; null: no version knows it.
const char* FunctionName(uint8_t function);

}  // namespace r2cc::profiler

#endif  // R2CC_NCCL_PROFILER_PROFILER_H_
