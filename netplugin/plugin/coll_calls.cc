#include "netplugin/plugin/coll_calls.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/fork_guard.h"
#include "netplugin/collnet/group_driver.h"
#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/guard.h"
#include "netplugin/plugin/process.h"
#include "netplugin/transport/collective/engine_group.h"
#include "netplugin/transport/collective/workers_reducer.h"

namespace r2cc::net {
namespace {

using abi::Result;
using collnet::GroupDriver;

// NCCL has 8 steps of each of some groups of channels under way: it asks for 64 at least.
constexpr size_t kOperationsMax = 64;
// NCCL has at most 8 steps of a buffer under way; more operations than that wait.
constexpr collnet::Slot kSlots = 8;
// Into so large pieces an operation is cut, whose sums travel while the next is added up. Those of NCCL are 2 MiB at most in a chain of
// heads, and several are under way at a time: two pieces are enough to overlap. Not measured.
constexpr uint64_t kPlanPieceBytes = 1 << 20;

struct CollListen {
  uint64_t id = 0;
  bool given = false;  // its group closes it
};

struct CollComm;
struct CollRequest {
  CollComm* comm = nullptr;
  collnet::OperationId operation = 0;
  size_t bytes = 0;
  bool used = false;
};

// What NCCL holds as collComm. Its service thread makes and closes it and registers memory, its progress thread does all else.
struct CollComm {
  CollComm(Process* process, ReduceWorkers* workers, uint64_t listen_id, const std::vector<Handle>& handles, uint32_t member)
      : flows(&process->engine(), listen_id, handles),
        reducer(workers),
        driver(
            {.group = {.members = static_cast<uint32_t>(handles.size()),
                       .member = member,
                       .slots = kSlots,
                       .deadline = process->collnet_deadline()},
             .number = handles[0].listen_id},
            [](const std::vector<uint64_t>& bytes_per_s, const std::vector<bool>& reach_all) {
              return collnet::PlanFor(bytes_per_s, kPlanPieceBytes, reach_all);
            },
            [members = static_cast<uint32_t>(handles.size())](const collnet::PlanSpec& plan, uint64_t bytes)
                -> std::shared_ptr<const plan::Schedule> { return collnet::MakeSchedule(plan, members, bytes); },
            {&flows, &reducer, &staging}) {}

  EngineGroup flows;
  WorkersReducer reducer;
  collnet::HostStaging staging;
  GroupDriver driver;
  std::array<CollRequest, kOperationsMax> requests{};
  bool logged = false;        // the log has its error
  uint64_t epoch_logged = 0;  // and of plans up to this one
  std::vector<uint32_t> unreachable_logged;

  void Move() {
    Process& process = Process::Get();
    driver.SetCapacity(process.engine().UsableBytesPerSecond());
    driver.Poll(process.Now());
    LogPaths();
    const collnet::Stamp* const plan = driver.newest_plan();
    if (plan == nullptr || plan->epoch == epoch_logged) return;
    epoch_logged = plan->epoch;
    process.Log(LogLevel::kInfo, "R2CC: CollNet: from operation " + std::to_string(plan->from) + " on " + collnet::Describe(plan->plan));
  }
  void LogPaths() {
    if (driver.unreachable() == unreachable_logged) return;
    unreachable_logged = driver.unreachable();
    if (unreachable_logged.empty()) return Process::Get().Log(LogLevel::kInfo, "R2CC: CollNet: rails lead to all members again");
    Process::Get().Log(LogLevel::kWarn, "R2CC: CollNet: " + NoRail() + "; only members that reach all others own parts of the sum");
  }
  // Where some member is out of reach.
  std::string NoRail() const {
    std::string members;
    for (const uint32_t member : driver.unreachable()) members += (members.empty() ? "" : ", ") + std::to_string(member);
    return "no rail leads to member" + std::string(driver.unreachable().size() == 1 ? " " : "s ") + members;
  }
  Result Failed() {
    if (!std::exchange(logged, true)) Process::Get().Log(LogLevel::kWarn, "R2CC: CollNet: " + driver.error());
    return Result::kRemoteError;
  }
};

Result Connect(const std::vector<Handle>& handles, uint32_t member, CollListen* listen, void** coll_comm) {
  Process& process = Process::Get();
  std::string error;
  ReduceWorkers* const workers = process.reduce_workers(&error);
  if (workers == nullptr) return Refuse(Result::kSystemError, error);
  listen->given = true;
  auto comm = std::make_unique<CollComm>(&process, workers, listen->id, handles, member);
  const Nanos until = process.Now() + process.deadline();
  while (!comm->driver.connected()) {
    if (!comm->driver.error().empty()) return comm->Failed();
    if (process.Now() >= until)
      return Refuse(Result::kRemoteError, "R2CC: CollNet: member " + std::to_string(member) + " of " + std::to_string(handles.size()) +
                                              " has no path to all others after " + std::to_string(process.deadline() / kNanosPerMs) +
                                              " ms (R2CC_DEADLINE_MS)" + (comm->driver.unreachable().empty() ? "" : ": " + comm->NoRail()));
    comm->Move();
    // As NCCL's own threads wait.
    std::this_thread::yield();
  }
  *coll_comm = comm.release();
  return Result::kSuccess;
}

}  // namespace

Result CallCollDevices(int* count) {
  return Guarded([&] {
    *count = Process::Get().collnet() ? static_cast<int>(Process::Get().rails().size()) : 0;
    return Result::kSuccess;
  });
}

Result CallCollListen(int device, void* handle, void** listen_comm) {
  return Guarded([&] {
    if (device < 0 || static_cast<size_t>(device) >= Process::Get().rails().size())
      return Refuse(Result::kInvalidArgument, "R2CC: there is no device " + std::to_string(device));
    auto listen = std::make_unique<CollListen>();
    Handle ours;
    listen->id = Process::Get().engine().Listen(&ours);
    std::memset(handle, 0, abi::kNetHandleBytesMax);
    std::memcpy(handle, &ours, sizeof(ours));
    *listen_comm = listen.release();
    return Result::kSuccess;
  });
}

Result CallCollConnect(void** handles, int members, int member, void* listen_comm, void** coll_comm) {
  *coll_comm = nullptr;
  return Guarded([&] {
    if (members < 2 || static_cast<uint32_t>(members) > collnet::kMembersMax || member < 0 || member >= members)
      return Refuse(Result::kInvalidUsage, "R2CC: CollNet: member " + std::to_string(member) + " of a group of " + std::to_string(members) +
                                               ": 2 to " + std::to_string(collnet::kMembersMax) + " are possible");
    std::vector<Handle> theirs(static_cast<size_t>(members));
    for (int i = 0; i < members; ++i)
      if (!ReadHandle(handles[i], &theirs[static_cast<size_t>(i)]))
        return Refuse(Result::kInvalidUsage, "R2CC: CollNet: the handle of member " + std::to_string(i) +
                                                 " is not one of this plugin: set NCCL_NET_PLUGIN=r2cc on all ranks");
    auto* const listen = static_cast<CollListen*>(listen_comm);
    if (listen->given) return Refuse(Result::kInvalidUsage, "R2CC: CollNet: the listener has a group already");
    return Connect(theirs, static_cast<uint32_t>(member), listen, coll_comm);
  });
}

Result CallCollRegister(void* data, size_t bytes, int type, void** mhandle) {
  if (type == abi::kPtrHost) return CallRegister(data, bytes, type, mhandle);
  *mhandle = nullptr;
  return Guarded(
      [&] { return Refuse(Result::kInvalidUsage, "R2CC: CollNet supports host memory only, not memory of kind " + std::to_string(type)); });
}

Result CallReduceSupport(abi::DataType type, abi::RedOp op, int* supported) {
  *supported = collnet::CanReduce(type, op) ? 1 : 0;
  return Result::kSuccess;
}

Result CallAllReduce(void* coll_comm, void* send_data, void* recv_data, size_t count, abi::DataType type, abi::RedOp op, void* send_mhandle,
                     void* recv_mhandle, void** request) {
  *request = nullptr;
  return Guarded([&] {
    auto* const comm = static_cast<CollComm*>(coll_comm);
    if (!comm->driver.error().empty()) return comm->Failed();
    if (!collnet::CanReduce(type, op))
      return Refuse(Result::kInvalidArgument, "R2CC: CollNet: type " + std::to_string(static_cast<int>(type)) + " and operation " +
                                                  std::to_string(static_cast<int>(op)) + " are not among those of reduceSupport");
    const auto *const from = static_cast<const Memory*>(send_mhandle), *const to = static_cast<const Memory*>(recv_mhandle);
    const uint64_t bytes = count <= kMessageBytesMax ? count * collnet::ElementBytes(type) : UINT64_MAX;
    if (!LiesIn(from, send_data, bytes) || !LiesIn(to, recv_data, bytes)) return Refuse(Result::kInvalidArgument, kOutside);
    for (CollRequest& one : comm->requests) {
      if (one.used) continue;
      const auto operation = comm->driver.Call({BufferIn(from, send_data), BufferIn(to, recv_data), count, type, op}, Process::Get().Now());
      if (!operation.has_value())
        return comm->driver.error().empty()
                   ? Refuse(Result::kInvalidArgument, "R2CC: CollNet: a vector of " + std::to_string(count) + " elements is too long")
                   : comm->Failed();
      one = {comm, *operation, bytes, true};
      *request = &one;
      break;
    }
    comm->Move();
    return Result::kSuccess;
  });
}

Result CallCollTest(void* request, int* done, int* size) {
  *done = 0;
  if (fork_guard::InForkedChild()) return Result::kInternalError;
  return Caught([&] {
    auto* const ours = static_cast<CollRequest*>(request);
    CollComm* const comm = ours->comm;
    if (!comm->driver.Done(ours->operation)) comm->Move();
    if (!comm->driver.Done(ours->operation)) return comm->driver.error().empty() ? Result::kSuccess : comm->Failed();
    *done = 1;
    if (size != nullptr) *size = static_cast<int>(ours->bytes);
    ours->used = false;
    return Result::kSuccess;
  });
}

Result CallCloseColl(void* coll_comm) {
  return Guarded([&] {
    delete static_cast<CollComm*>(coll_comm);
    return Result::kSuccess;
  });
}

Result CallCollCloseListen(void* listen_comm) {
  return Guarded([&] {
    const std::unique_ptr<CollListen> listen(static_cast<CollListen*>(listen_comm));
    if (!listen->given) Process::Get().engine().CloseListen(listen->id);
    return Result::kSuccess;
  });
}

}  // namespace r2cc::net
