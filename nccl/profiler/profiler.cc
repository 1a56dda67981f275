#include "nccl/profiler/profiler.h"

#include <iterator>
#include <utility>

namespace r2cc::profiler {
namespace {

// The kind of object that a handle names, in its lowest bits: NCCL leaves out children of an event that has no handle.
enum class Kind : uint64_t { kOperation = 1, kPart = 2, kOther = 3 };
constexpr uint64_t kKindBits = 2;
// The first id is below this, so that a handle has room for each id that follows.
constexpr OperationId kFirstIdEnd = OperationId{1} << 61;

void* HandleOf(Kind kind, OperationId operation) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(operation << kKindBits | static_cast<uint64_t>(kind)));
}
Kind KindOf(const void* handle) { return static_cast<Kind>(reinterpret_cast<uintptr_t>(handle) & ((1U << kKindBits) - 1)); }
// 0: `handle` is of another kind.
OperationId OperationOf(const void* handle, Kind kind) {
  return KindOf(handle) == kind ? static_cast<OperationId>(reinterpret_cast<uintptr_t>(handle)) >> kKindBits : 0;
}

constexpr const char* kFunctions[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv"};

}  // namespace

Profiler::Profiler(const Clock* clock, int32_t pid, OperationId first) : clock_(clock), pid_(pid), log_(first % kFirstIdEnd) {}

const char* FunctionName(uint8_t function) { return function < std::size(kFunctions) ? kFunctions[function] : nullptr; }

void Profiler::Open(OperationLog::Communicator communicator, bool joined, void** context, int* mask) {
  if (mask != nullptr) *mask = joined ? static_cast<int>(kMask) : 0;
  if (context == nullptr) return;
  const MutexLock lock(mutex_);
  *context = reinterpret_cast<void*>(static_cast<uintptr_t>(log_.Open(std::move(communicator))));
}

void Profiler::Close(void* context) {
  const MutexLock lock(mutex_);
  log_.Close(reinterpret_cast<uintptr_t>(context));
}

OperationId Profiler::Begin(uint64_t context, const Event& event) {
  if (event.names_communicator) {
    OperationLog::Communicator* const communicator = log_.Find(context);
    if (communicator != nullptr && communicator->id != event.communicator)
      *communicator = {event.communicator, event.communicator_name == nullptr ? "" : event.communicator_name, event.rank, 0};
  }
  return log_.Begin(context, event.function, event.number, event.peer);
}

void Profiler::Start(void* context, void** handle, const Event& event) {
  if (handle == nullptr) return;
  *handle = HandleOf(Kind::kOther, 0);
  const bool is_part = event.type == abi::kProfileProxyOp;
  if (!is_part && event.type != abi::kProfileColl && event.type != abi::kProfileP2p) return;
  if (is_part && event.pid != pid_) return;
  const OperationId parent = OperationOf(event.parent, Kind::kOperation);
  if (is_part && parent == 0) return;
  const Nanos now = is_part ? clock_->Now() : 0;
  const MutexLock lock(mutex_);
  if (!is_part)
    *handle = HandleOf(Kind::kOperation, Begin(reinterpret_cast<uintptr_t>(context), event));
  else if (log_.BeginPart(parent, now))
    *handle = HandleOf(Kind::kPart, parent);
}

// That an operation stops is that it is enqueued.
void Profiler::Stop(void* handle) {
  const OperationId operation = OperationOf(handle, Kind::kPart);
  if (operation == 0) return;
  const Nanos now = clock_->Now();
  const MutexLock lock(mutex_);
  log_.EndPart(operation, now);
}

size_t Profiler::HeldOperations(uint64_t communicator, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held) {
  const MutexLock lock(mutex_);
  return log_.HeldOperations(communicator, begun, ended, held);
}

}  // namespace r2cc::profiler
