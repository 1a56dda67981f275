// The functions that this library has in front of NCCL's, under NCCL's names. Each goes to the Interposer where R2CC_SEAT=1, else straight
// to NCCL.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "base/core/hash.h"
#include "base/core/release.h"
#include "nccl/cuda_driver.h"
#include "nccl/interposer.h"
#include "nccl/libnccl.h"
#include "nccl/loaded_rails.h"
#include "nccl/roll_call.h"
#include "netplugin/config/config.h"

namespace r2cc::nccl {
namespace {

void Log(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

// Made with the first call and never destroyed: the program may call while it exits.
struct State {
  NcclCalls calls{};
  LoadedRails rails;
  Interposer* interposer = nullptr;  // null: every call goes straight to NCCL

  State() {
    calls.Find();
    net::PluginConfig config;
    std::string problem;
    if (!net::LoadConfig(net::FromEnvironment, &config, &problem)) {
      Log("R2CC: no seats in NCCL's tree: " + problem);
      return;
    }
    if (!config.seat) return;
    problem = calls.Unfit();
    // Each process makes the ID itself then. All must be equal, as NCCL hashes them into the names of nodes: no note may be there.
    if (problem.empty() && net::FromEnvironment("NCCL_COMM_ID") != nullptr)
      problem = "with NCCL_COMM_ID no process decides for all ranks; unset it";
    Cuda* const cuda = problem.empty() ? CudaDriver::Open(config.deadline_ms * kNanosPerMs, &problem) : nullptr;
    if (cuda == nullptr) {
      Log("R2CC: R2CC_SEAT=1 has no effect: " + problem);
      return;
    }
    if (config.log != net::LogLevel::kWarn) Log("R2CC: libr2cc-nccl.so " + ReleaseAndRevision());
    const auto every = static_cast<uint32_t>(config.seat_every);
    // From 0 on is from the least on.
    const uint64_t collnet_min_bytes = config.collnet_min_bytes.has_value() ? std::max<uint64_t>(1, *config.collnet_min_bytes) : 0;
    auto* const rolls = new SocketRollCalls(every, Fnv1a64(Release()), config.deadline_ms * kNanosPerMs);
    interposer = new Interposer(
        {new Libnccl(&calls), cuda, &rails, rolls, Log, config.log == net::LogLevel::kDebug ? Log : LogLine(), every, collnet_min_bytes});
  }
};

State& Get() {
  static State* const state = new State;
  return *state;
}

// NCCL's own function, if there is one.
template <typename Function, typename... Arguments>
Result Straight(Function function, Arguments... arguments) {
  return function == nullptr ? Result::kInvalidUsage : function(arguments...);
}

// No exception crosses the ABI.
template <typename Body>
Result Caught(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "R2CC: %s\n", exception.what());
  } catch (...) {
  }
  return Result::kSystemError;
}

template <typename Function, typename... Arguments>
Result Other(Function NcclCalls::*function, Comm comm, Stream stream, Arguments... arguments) noexcept {
  return Caught([&] {
    State& state = Get();
    const auto enqueue = [&] { return Straight(state.calls.*function, arguments..., comm, stream); };
    return state.interposer == nullptr ? enqueue() : state.interposer->Other(comm, stream, enqueue);
  });
}

}  // namespace
}  // namespace r2cc::nccl

#define R2CC_EXPORT __attribute__((visibility("default")))

using r2cc::nccl::AllReduceCall;
using r2cc::nccl::Caught;
using r2cc::nccl::Comm;
using r2cc::nccl::DataType;
using r2cc::nccl::Get;
using r2cc::nccl::NcclCalls;
using r2cc::nccl::Other;
using r2cc::nccl::Result;
using r2cc::nccl::State;
using r2cc::nccl::Straight;
using r2cc::nccl::Stream;
using r2cc::nccl::UniqueId;

extern "C" {

R2CC_EXPORT Result ncclGetUniqueId(UniqueId* id) {
  return Caught([&] {
    State& state = Get();
    const auto make = [&] { return Straight(state.calls.get_unique_id, id); };
    return state.interposer == nullptr ? make() : state.interposer->MakeId(id, make);
  });
}
R2CC_EXPORT Result ncclCommInitRank(Comm* comm, int ranks, UniqueId id, int rank) {
  return Caught([&] {
    State& state = Get();
    const auto begin = [&] { return Straight(state.calls.comm_init_rank, comm, ranks, id, rank); };
    return state.interposer == nullptr ? begin() : state.interposer->Init(id, ranks, rank, comm, begin);
  });
}
R2CC_EXPORT Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, void* config) {
  return Caught([&] {
    State& state = Get();
    const auto begin = [&] { return Straight(state.calls.comm_init_rank_config, comm, ranks, id, rank, config); };
    return state.interposer == nullptr ? begin() : state.interposer->Init(id, ranks, rank, comm, begin);
  });
}
R2CC_EXPORT Result ncclCommInitRankScalable(Comm* comm, int ranks, int rank, int count, UniqueId* ids, void* config) {
  return Caught([&] {
    State& state = Get();
    const auto begin = [&] { return Straight(state.calls.comm_init_rank_scalable, comm, ranks, rank, count, ids, config); };
    // The process that made the first ID decides.
    return state.interposer == nullptr || count < 1 || ids == nullptr ? begin() : state.interposer->Init(ids[0], ranks, rank, comm, begin);
  });
}
R2CC_EXPORT Result ncclCommSplit(Comm comm, int color, int key, Comm* child, void* config) {
  return Caught([&] {
    State& state = Get();
    if (state.interposer == nullptr || state.calls.comm_split == nullptr)
      return Straight(state.calls.comm_split, comm, color, key, child, config);
    return state.interposer->Split(comm, color, key, child, config);
  });
}

R2CC_EXPORT Result ncclAllReduce(const void* send, void* receive, size_t count, int type, int operation, Comm comm, Stream stream) {
  return Caught([&] {
    State& state = Get();
    if (state.interposer == nullptr) return Straight(state.calls.all_reduce, send, receive, count, type, operation, comm, stream);
    return state.interposer->AllReduce({send, receive, count, static_cast<DataType>(type), operation, stream}, comm);
  });
}

R2CC_EXPORT Result ncclAllGather(const void* send, void* receive, size_t count, int type, Comm comm, Stream stream) {
  return Other(&NcclCalls::all_gather, comm, stream, send, receive, count, type);
}
R2CC_EXPORT Result ncclReduceScatter(const void* send, void* receive, size_t count, int type, int operation, Comm comm, Stream stream) {
  return Other(&NcclCalls::reduce_scatter, comm, stream, send, receive, count, type, operation);
}
R2CC_EXPORT Result ncclReduce(const void* send, void* receive, size_t count, int type, int operation, int root, Comm comm, Stream stream) {
  return Other(&NcclCalls::reduce, comm, stream, send, receive, count, type, operation, root);
}
R2CC_EXPORT Result ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, Comm comm, Stream stream) {
  return Other(&NcclCalls::broadcast, comm, stream, send, receive, count, type, root);
}
R2CC_EXPORT Result ncclBcast(void* buffer, size_t count, int type, int root, Comm comm, Stream stream) {
  return Other(&NcclCalls::bcast, comm, stream, buffer, count, type, root);
}
R2CC_EXPORT Result ncclSend(const void* buffer, size_t count, int type, int peer, Comm comm, Stream stream) {
  return Other(&NcclCalls::send, comm, stream, buffer, count, type, peer);
}
R2CC_EXPORT Result ncclRecv(void* buffer, size_t count, int type, int peer, Comm comm, Stream stream) {
  return Other(&NcclCalls::recv, comm, stream, buffer, count, type, peer);
}
R2CC_EXPORT Result ncclAlltoAll(const void* send, void* receive, size_t count, int type, Comm comm, Stream stream) {
  return Other(&NcclCalls::all_to_all, comm, stream, send, receive, count, type);
}
R2CC_EXPORT Result ncclGather(const void* send, void* receive, size_t count, int type, int root, Comm comm, Stream stream) {
  return Other(&NcclCalls::gather, comm, stream, send, receive, count, type, root);
}
R2CC_EXPORT Result ncclScatter(const void* send, void* receive, size_t count, int type, int root, Comm comm, Stream stream) {
  return Other(&NcclCalls::scatter, comm, stream, send, receive, count, type, root);
}

R2CC_EXPORT Result ncclGroupStart() {
  return Caught([&] {
    State& state = Get();
    return state.interposer == nullptr ? Straight(state.calls.group_start) : state.interposer->GroupStart();
  });
}
R2CC_EXPORT Result ncclGroupEnd() {
  return Caught([&] {
    State& state = Get();
    return state.interposer == nullptr ? Straight(state.calls.group_end) : state.interposer->GroupEnd();
  });
}

R2CC_EXPORT Result ncclCommRegister(Comm comm, void* buffer, size_t bytes, void** handle) {
  return Caught([&] {
    State& state = Get();
    if (state.interposer == nullptr || state.calls.comm_register == nullptr)
      return Straight(state.calls.comm_register, comm, buffer, bytes, handle);
    return state.interposer->Register(comm, buffer, bytes, handle);
  });
}
R2CC_EXPORT Result ncclCommDeregister(Comm comm, void* handle) {
  return Caught([&] {
    State& state = Get();
    if (state.interposer == nullptr || state.calls.comm_deregister == nullptr) return Straight(state.calls.comm_deregister, comm, handle);
    return state.interposer->Deregister(comm, handle);
  });
}

R2CC_EXPORT Result ncclCommFinalize(Comm comm) {
  return Caught([&] {
    State& state = Get();
    return state.interposer == nullptr ? Straight(state.calls.comm_finalize, comm) : state.interposer->Finalize(comm);
  });
}
R2CC_EXPORT Result ncclCommDestroy(Comm comm) {
  return Caught([&] {
    State& state = Get();
    return state.interposer == nullptr ? Straight(state.calls.comm_destroy, comm) : state.interposer->Destroy(comm);
  });
}
R2CC_EXPORT Result ncclCommAbort(Comm comm) {
  return Caught([&] {
    State& state = Get();
    return state.interposer == nullptr ? Straight(state.calls.comm_abort, comm) : state.interposer->Abort(comm);
  });
}
R2CC_EXPORT Result ncclCommRevoke(Comm comm, int flags) {
  return Caught([&] {
    State& state = Get();
    if (state.interposer == nullptr || state.calls.comm_revoke == nullptr) return Straight(state.calls.comm_revoke, comm, flags);
    return state.interposer->Revoke(comm, flags);
  });
}
R2CC_EXPORT Result ncclCommGetAsyncError(Comm comm, Result* error) {
  return Caught([&] {
    State& state = Get();
    if (state.interposer == nullptr) return Straight(state.calls.comm_get_async_error, comm, error);
    return state.interposer->AsyncError(comm, error);
  });
}

}  // extern "C"
