#include "nccl/libnccl.h"

#include <dlfcn.h>
#include <sched.h>

#include <thread>
#include <type_traits>

namespace r2cc::nccl {
namespace {

constexpr int kVersionLeast = 21800;  // ncclCommSplit
// The newest whose functions were looked at; a later one may mean something else by them.
constexpr int kVersionMost = 23299;

}  // namespace

void NcclCalls::Find() {
  // Python opens it for itself alone, so it is not among what follows this library.
  void* const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  const auto find = [&](auto& call, const std::string& name) {
    void* found = library == nullptr ? nullptr : dlsym(library, ("p" + name).c_str());
    if (found == nullptr) found = dlsym(RTLD_NEXT, ("p" + name).c_str());
    // RCCL and builds with NCCL inside may lack the second name.
    if (found == nullptr) found = dlsym(RTLD_NEXT, name.c_str());
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(found);
  };
  find(get_version, "ncclGetVersion");
  find(get_unique_id, "ncclGetUniqueId");
  find(comm_init_rank, "ncclCommInitRank");
  find(comm_init_rank_config, "ncclCommInitRankConfig");
  find(comm_init_rank_scalable, "ncclCommInitRankScalable");
  find(all_reduce, "ncclAllReduce");
  find(all_gather, "ncclAllGather");
  find(reduce_scatter, "ncclReduceScatter");
  find(reduce, "ncclReduce");
  find(broadcast, "ncclBroadcast");
  find(bcast, "ncclBcast");
  find(send, "ncclSend");
  find(recv, "ncclRecv");
  find(all_to_all, "ncclAlltoAll");
  find(gather, "ncclGather");
  find(scatter, "ncclScatter");
  find(group_start, "ncclGroupStart");
  find(group_end, "ncclGroupEnd");
  find(comm_count, "ncclCommCount");
  find(comm_user_rank, "ncclCommUserRank");
  find(comm_split, "ncclCommSplit");
  find(comm_register, "ncclCommRegister");
  find(comm_deregister, "ncclCommDeregister");
  find(comm_finalize, "ncclCommFinalize");
  find(comm_destroy, "ncclCommDestroy");
  find(comm_abort, "ncclCommAbort");
  find(comm_revoke, "ncclCommRevoke");
  find(comm_get_async_error, "ncclCommGetAsyncError");
}

std::string NcclCalls::Unfit() const {
  int version = 0;
  if (get_version == nullptr || get_version(&version) != Result::kSuccess) return "this NCCL reports no version";
  const std::string name = "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
  if (version < kVersionLeast) return name + " is older than 2.18";
  if (version > kVersionMost) return name + " is newer than what was tried";
  const bool all = all_reduce != nullptr && group_start != nullptr && group_end != nullptr && comm_count != nullptr &&
                   comm_user_rank != nullptr && comm_split != nullptr && comm_finalize != nullptr && comm_destroy != nullptr &&
                   comm_abort != nullptr && comm_get_async_error != nullptr;
  return all ? "" : name + " lacks a function";
}

Result Libnccl::AllReduce(const AllReduceCall& call, Comm comm) {
  return calls_.all_reduce(call.send, call.receive, call.count, static_cast<int>(call.type), call.operation, comm, call.stream);
}

Result Libnccl::Settle(Comm comm) {
  for (;;) {
    Result state = Result::kSuccess;
    const Result result = calls_.comm_get_async_error(comm, &state);
    if (result != Result::kSuccess) return result;
    if (state != Result::kInProgress) return state;
    sched_yield();
  }
}

Result Libnccl::Split(Comm comm, int key, Comm* child) {
  // Without a configuration the child has its parent's.
  Result result = calls_.comm_split(comm, 0, key, child, nullptr);
  if (result != Result::kInProgress) return result;
  result = Settle(comm);
  return result != Result::kSuccess || *child == nullptr ? result : Settle(*child);
}

Result Libnccl::Abort(Comm parent, Comm child) {
  if (child == nullptr) return calls_.comm_abort(parent);
  std::thread other([this, child] { calls_.comm_abort(child); });
  const Result result = calls_.comm_abort(parent);
  other.join();
  return result;
}

}  // namespace r2cc::nccl
