// The exported symbols: NCCL's profiler tables, version by version, and the one Profiler of the process. Each entry adapts its arguments to
// profiler.h and does nothing else. NCCL opens this library where NCCL_PROFILER_PLUGIN=r2cc, and the plugin's own library has none of this:
// NCCL would look for a profiler there, too, and switch profiling on for everybody.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/core/fork_guard.h"
#include "base/core/release.h"
#include "nccl/loaded_symbol.h"
#include "nccl/profiler/profiler.h"
#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/profiler_v1.h"
#include "netplugin/abi/profiler_v2.h"
#include "netplugin/abi/profiler_v4.h"
#include "netplugin/abi/profiler_v5.h"

namespace r2cc::profiler {
namespace {

using abi::Result;

// Never destroyed: NCCL may call while the process exits.
Profiler& Get() {
  static const SteadyClock* const clock = new SteadyClock;
  // Ids of other processes of the node begin elsewhere.
  static Profiler* const profiler = new Profiler(clock, getpid(), static_cast<OperationId>(clock->Now()) << 8);
  return *profiler;
}

// No exception crosses the ABI. A child that was forked has none of the parent's threads, and its locks may be held for ever.
template <typename Body>
Result Caught(Body body) noexcept {
  try {
    if (!fork_guard::InForkedChild()) body();
  } catch (...) {
    // Out of memory: the operation is not named.
  }
  return Result::kSuccess;
}

size_t HeldOperations(uint64_t communicator, int64_t begun_ns, int64_t ended_ns, abi::HeldOperationV1* held, size_t most) {
  size_t count = 0;
  Caught([&] { count = Get().HeldOperations(communicator, begun_ns, ended_ns, {held, most}); });
  return count;
}

void Log(abi::Logger log, abi::DebugLogLevel level, const char* line) {
  if (log != nullptr)
    log(level, abi::kLogEnv, __FILE__, __LINE__, "R2CC: %s", line);
  else if (level == abi::DebugLogLevel::kWarn)
    std::fprintf(stderr, "R2CC: %s\n", line);
}

// True: the plugin asks this profiler. Each outcome is logged once.
bool Join(abi::Logger log) {
  static std::atomic<bool> joined{false}, logged{false};
  if (joined.load(std::memory_order_acquire)) return true;
  const auto* const plugin = static_cast<const abi::ProfileTableV1*>(FindLoaded("r2cc_profile_v1"));
  if (plugin == nullptr || plugin->ask(HeldOperations) == 0) {
    if (!logged.exchange(true))
      Log(log, abi::DebugLogLevel::kWarn,
          plugin == nullptr
              ? "the profiler records nothing: libnccl-net-r2cc.so of this release is not in this process; set NCCL_NET_PLUGIN=r2cc"
              : "the profiler records nothing: this process has another profiler of R2CC; load one file alone");
    return false;
  }
  if (!logged.exchange(true)) Log(log, abi::DebugLogLevel::kInfo, ("profiler " + ReleaseAndRevision()).c_str());
  joined.store(true, std::memory_order_release);
  return true;
}

Result Open(void** context, int* mask, uint64_t id, const char* name, int ranks, int rank, abi::Logger log) {
  return Caught([&] { Get().Open({id, name == nullptr ? "" : name, rank, ranks}, Join(log), context, mask); });
}
Result OpenV1(void** context, int* mask) { return Open(context, mask, 0, nullptr, 0, 0, nullptr); }
Result OpenV4(void** context, int* mask, const char* name, uint64_t id, int, int ranks, int rank, abi::Logger log) {
  return Open(context, mask, id, name, ranks, rank, log);
}
Result OpenV5(void** context, uint64_t id, int* mask, const char* name, int, int ranks, int rank, abi::Logger log) {
  return Open(context, mask, id, name, ranks, rank, log);
}

const char* NameOf(uint8_t function) { return FunctionName(function); }
const char* NameOf(const char* function) { return function; }

template <typename Descriptor>
Event EventOf(const Descriptor& from) {
  // Before v4.
  constexpr bool kNames = requires { from.coll.communicator; };
  Event event{.type = from.type, .parent = from.parent, .names_communicator = kNames, .rank = from.rank};
  const auto describe = [&](const auto& operation) {
    event.function = NameOf(operation.function);
    if constexpr (kNames) {
      event.communicator = operation.communicator;
      event.communicator_name = operation.name;
    }
  };
  if (event.type == abi::kProfileColl) {
    describe(from.coll);
    event.number = static_cast<uint32_t>(from.coll.sequence + 1);
  } else if (event.type == abi::kProfileP2p) {
    describe(from.p2p);
    event.peer = from.p2p.peer;
  } else if (event.type == abi::kProfileProxyOp) {
    event.pid = from.proxy_op.pid;
  }
  return event;
}

template <typename Descriptor>
Result Start(void* context, void** handle, Descriptor* descriptor) {
  if (handle != nullptr) *handle = nullptr;
  return Caught([&] {
    if (descriptor != nullptr) Get().Start(context, handle, EventOf(*descriptor));
  });
}

Result Stop(void* handle) {
  return Caught([&] { Get().Stop(handle); });
}
// Changes within an event are not requested.
Result RecordState(void*, int, void*) { return Result::kSuccess; }
Result Close(void* context) {
  return Caught([&] { Get().Close(context); });
}

}  // namespace
}  // namespace r2cc::profiler

#define R2CC_EXPORT __attribute__((visibility("default")))

namespace abi = r2cc::abi;
namespace profiler = r2cc::profiler;

extern "C" {

// In the order of the table: name, init, startEvent, stopEvent, recordEventState, finalize.
R2CC_EXPORT abi::ProfilerTableV1 ncclProfiler_v1 = {profiler::kProfilerName, profiler::OpenV1,      profiler::Start<abi::ProfilerEventV1>,
                                                    profiler::Stop,          profiler::RecordState, profiler::Close};
R2CC_EXPORT abi::ProfilerTableV2 ncclProfiler_v2 = {profiler::kProfilerName, profiler::OpenV1,      profiler::Start<abi::ProfilerEventV2>,
                                                    profiler::Stop,          profiler::RecordState, profiler::Close};
R2CC_EXPORT abi::ProfilerTableV3 ncclProfiler_v3 = {profiler::kProfilerName, profiler::OpenV1,      profiler::Start<abi::ProfilerEventV2>,
                                                    profiler::Stop,          profiler::RecordState, profiler::Close};
R2CC_EXPORT abi::ProfilerTableV4 ncclProfiler_v4 = {profiler::kProfilerName, profiler::OpenV4,      profiler::Start<abi::ProfilerEventV4>,
                                                    profiler::Stop,          profiler::RecordState, profiler::Close};
R2CC_EXPORT abi::ProfilerTableV5 ncclProfiler_v5 = {profiler::kProfilerName, profiler::OpenV5,      profiler::Start<abi::ProfilerEventV5>,
                                                    profiler::Stop,          profiler::RecordState, profiler::Close};
R2CC_EXPORT abi::ProfilerTableV6 ncclProfiler_v6 = ncclProfiler_v5;
R2CC_EXPORT abi::ProfilerTableV7 ncclProfiler_v7 = ncclProfiler_v5;

}  // extern "C"
