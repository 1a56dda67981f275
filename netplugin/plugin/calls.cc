#include "netplugin/plugin/calls.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/core/fork_guard.h"
#include "base/core/mutex.h"
#include "netplugin/plugin/guard.h"
#include "netplugin/plugin/process.h"
#include "netplugin/plugin/seat_watch.h"

namespace r2cc::net {
namespace {

using abi::Result;

// One outstanding isend or irecv.
struct Request {
  Comm* comm = nullptr;
  uint64_t number = 0;
  uint64_t sent_bytes = 0;  // of a send
  bool receive = false;
  bool used = false;
};

// One communicator's. All of them share the process's rails and connections.
struct Context {
  uint64_t communicator = 0;
  std::atomic<bool> seat{false};
};

// NCCL holds a context by a number that is never used again, and never by a pointer. NCCL 2.28.3 ends the context of a communicator while
// others that share its resources live, and makes their connections with it. Any thread.
class Contexts {
 public:
  void* Open(uint64_t communicator) {
    Context* opened = nullptr;
    uintptr_t number = 0;
    {
      const MutexLock lock(mutex_);
      number = ++opened_;
      opened = &all_[number];
      opened->communicator = communicator;
    }
    watch_.Note(opened, 0);
    return reinterpret_cast<void*>(number);
  }

  // False: it has ended, or there was none.
  bool Close(const void* context) {
    std::map<uintptr_t, Context>::node_type closed;
    {
      const MutexLock lock(mutex_);
      closed = all_.extract(reinterpret_cast<uintptr_t>(context));
    }
    if (closed.empty()) return false;
    watch_.Forget(&closed.mapped());
    return true;
  }

  struct Facts {
    uint64_t communicator = 0;  // 0: it has ended, or there was none
    bool seat = false;
  };
  Facts Find(const void* context) {
    const MutexLock lock(mutex_);
    const auto found = all_.find(reinterpret_cast<uintptr_t>(context));
    if (found == all_.end()) return {};
    return {found->second.communicator, found->second.seat.load(std::memory_order_acquire)};
  }

  SeatWatch<Context>& watch() { return watch_; }

 private:
  SeatWatch<Context> watch_;
  Mutex mutex_;
  uintptr_t opened_ R2CC_GUARDED_BY(mutex_) = 0;
  std::map<uintptr_t, Context> all_ R2CC_GUARDED_BY(mutex_);
};

// Never destroyed: NCCL may call while the process exits.
Contexts& AllContexts() {
  static auto* const all = new Contexts;
  return *all;
}

struct ListenHandle {
  uint64_t id = 0;
};

// What NCCL holds as sendComm and recvComm. Its progress thread alone touches the requests.
template <typename CommType>
struct CommHandle {
  std::unique_ptr<CommType> comm;
  std::array<Request, kRequestsMax> requests{};

  // Null if the flow has all the requests outstanding that it may have.
  Request* NewRequest(bool receive, uint64_t sent_bytes) {
    Request& request = requests[comm->posted % kRequestsMax];
    if (request.used) return nullptr;
    request = {comm.get(), comm->posted, sent_bytes, receive, true};
    return &request;
  }
};
using SendHandle = CommHandle<SendComm>;
using RecvHandle = CommHandle<RecvComm>;

// Where the plugin's ways of failing become NCCL's.
Result Failed(Comm* comm) {
  if (const std::string line = comm->TakeError(); !line.empty()) Process::Get().Log(LogLevel::kWarn, line);
  return Result::kRemoteError;
}

Result RegisterMemory(Memory memory, void* data, size_t bytes, void** mhandle) {
  *mhandle = nullptr;
  if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(data))
    return Refuse(Result::kInvalidArgument, "R2CC: memory of " + std::to_string(bytes) + " bytes is too large to be registered");
  memory.base = static_cast<std::byte*>(data);
  memory.bytes = bytes;
  std::string error;
  if (memory.kind != MemoryKind::kHost) {
    const std::optional<int> gpu = Process::Get().gpu().Of(data);
    if (!gpu) {
      const std::string& missing = Process::Get().gpu().missing();
      return Refuse(Result::kInvalidUsage, missing.empty() ? "R2CC: memory that is to be registered as a GPU's is not" : missing);
    }
    memory.gpu = *gpu;
  }
  *mhandle = const_cast<Memory*>(Process::Get().engine().memory().Register(memory, &error));
  // It goes by way of the host, and the line says why.
  if (*mhandle != nullptr && memory.kind != MemoryKind::kHost && static_cast<const Memory*>(*mhandle)->id == 0)
    Process::Get().Log(LogLevel::kWarn, error);
  return *mhandle != nullptr ? Result::kSuccess : Refuse(Result::kInvalidUsage, error);
}

}  // namespace

Result CallInit(abi::Logger logger) {
  if (logger != nullptr) Process::Get().SetLogger(logger);
  return Guarded([] { return Result::kSuccess; });
}

Result CallUse(const abi::NetCommConfig* config) {
  return Guarded([&] {
    if (config != nullptr) Process::Get().engine().UseTrafficClass(config->traffic_class);
    return Result::kSuccess;
  });
}

Result CallOpenContext(void** context, uint64_t communicator, abi::Logger logger, const abi::NetCommConfig* config) {
  Result result = CallInit(logger);
  if (result == Result::kSuccess) result = CallUse(config);
  if (result != Result::kSuccess) return result;
  return Guarded([&] {
    *context = AllContexts().Open(communicator);
    Process::Get().AddContext();
    return Result::kSuccess;
  });
}

Result CallFinalize(void* context) {
  return Guarded([&] {
    if (AllContexts().Close(context)) Process::Get().RemoveContext();
    return Result::kSuccess;
  });
}

Result CallDevices(int* count) {
  return Guarded([&] {
    *count = static_cast<int>(Process::Get().rails().size());
    return Result::kSuccess;
  });
}

Result CallDevice(int index, RailProperties* device) {
  return Guarded([&] {
    Process& process = Process::Get();
    const std::vector<Rail>& rails = process.rails();
    if (index < 0 || static_cast<size_t>(index) >= rails.size())
      return Refuse(Result::kInvalidArgument, "R2CC: there is no device " + std::to_string(index));
    const Rail& rail = rails[static_cast<size_t>(index)];
    int memory = abi::kPtrHost;
    // Members of a CollNet group add up in host memory, and NCCL takes one answer for both tables.
    if (!process.collnet()) {
      if (process.engine().memory().Takes(MemoryKind::kCuda)) memory |= abi::kPtrCuda;
      if (process.engine().memory().Takes(MemoryKind::kDmaBuf)) memory |= abi::kPtrDmaBuf;
    }
    *device = {process.device_name(rail.index).c_str(), rail.pci_path.empty() ? nullptr : rail.pci_path.c_str(), rail.guid, rail.speed_mbps,
               memory};
    return Result::kSuccess;
  });
}

Result CallListen(int device, void* handle, void** listen_comm) {
  return Guarded([&] {
    if (device < 0 || static_cast<size_t>(device) >= Process::Get().rails().size())
      return Refuse(Result::kInvalidArgument, "R2CC: there is no device " + std::to_string(device));
    Handle ours;
    auto listen = std::make_unique<ListenHandle>();
    listen->id = Process::Get().engine().Listen(&ours);
    std::memset(handle, 0, abi::kNetHandleBytesMax);
    std::memcpy(handle, &ours, sizeof(ours));
    *listen_comm = listen.release();
    return Result::kSuccess;
  });
}

void WatchForSeatFlows() noexcept { AllContexts().watch().Begin(0); }

int MarkSeatFlows(int dealt) noexcept {
  return AllContexts().watch().End([dealt](Context* context) { context->seat.store(dealt == 1, std::memory_order_release); }) ? 1 : 0;
}

Result CallConnect(const void* context, int device, const void* handle, void** send_comm) {
  *send_comm = nullptr;
  return Guarded([&] {
    Process& process = Process::Get();
    Handle theirs;
    if (!ReadHandle(handle, &theirs))
      return Refuse(Result::kInvalidUsage,
                    "R2CC: the peer's handle is not one of this plugin: set NCCL_NET=R2CC and NCCL_NET_PLUGIN=r2cc on all ranks");
    if (device < 0 || static_cast<size_t>(device) >= process.rails().size())
      return Refuse(Result::kInvalidArgument, "R2CC: there is no device " + std::to_string(device));
    // Before there is a comm: once its peer knows it, it must not be dropped.
    auto send = std::make_unique<SendHandle>();
    std::unique_ptr<SendComm> comm = process.pending_connects().Take(theirs.listen_id);
    if (comm == nullptr) {
      for (auto& abandoned : process.pending_connects().TakeAbandoned(process.Now())) process.engine().Close(std::move(abandoned));
      std::string error;
      const Contexts::Facts facts = AllContexts().Find(context);
      comm = process.engine().Connect(theirs, static_cast<uint16_t>(device), &error, facts.seat, facts.communicator);
      if (comm == nullptr) return Refuse(Result::kRemoteError, error);
    }
    switch (comm->state.load(std::memory_order_acquire)) {
      case Comm::State::kOpening: process.pending_connects().Put(theirs.listen_id, std::move(comm), process.Now()); return Result::kSuccess;
      case Comm::State::kFailed: {
        // The peer accepted it and has closed it since, as it may: the first isend says so.
        if (comm->opened.load(std::memory_order_relaxed)) break;
        const Result result = Failed(comm.get());
        process.engine().Close(std::move(comm));
        return result;
      }
      case Comm::State::kOpen: break;
    }
    send->comm = std::move(comm);
    *send_comm = send.release();
    return Result::kSuccess;
  });
}

Result CallAccept(void* listen_comm, void** recv_comm) {
  *recv_comm = nullptr;
  return Guarded([&] {
    auto recv = std::make_unique<RecvHandle>();
    recv->comm = Process::Get().engine().Accept(static_cast<ListenHandle*>(listen_comm)->id);
    if (recv->comm != nullptr) *recv_comm = recv.release();
    return Result::kSuccess;
  });
}

Result CallRegister(void* data, size_t bytes, int type, void** mhandle) {
  return Guarded([&] {
    if (type != abi::kPtrHost && type != abi::kPtrCuda)
      return Refuse(Result::kInvalidArgument, "R2CC: there is no kind " + std::to_string(type) + " of memory");
    return RegisterMemory({.kind = type == abi::kPtrHost ? MemoryKind::kHost : MemoryKind::kCuda}, data, bytes, mhandle);
  });
}

Result CallRegisterDmaBuf(void* data, size_t bytes, uint64_t offset, int descriptor, void** mhandle) {
  return Guarded(
      [&] { return RegisterMemory({.kind = MemoryKind::kDmaBuf, .dma_buf = descriptor, .dma_buf_offset = offset}, data, bytes, mhandle); });
}

// Also after the end, and in a child that was forked: there it is nobody's.
Result CallDeregister(void* mhandle) {
  if (mhandle == nullptr || fork_guard::InForkedChild()) return Result::kSuccess;
  return Caught([&] {
    Process::Get().engine().memory().Unregister(static_cast<const Memory*>(mhandle));
    return Result::kSuccess;
  });
}

Result CallSend(void* send_comm, void* data, size_t bytes, void* mhandle, void** request) {
  *request = nullptr;
  return Guarded([&] {
    auto* send = static_cast<SendHandle*>(send_comm);
    if (send->comm->state.load(std::memory_order_acquire) == Comm::State::kFailed) return Failed(send->comm.get());
    if (bytes > kMessageBytesMax)
      return Refuse(Result::kInvalidArgument, "R2CC: a message of " + std::to_string(bytes) + " bytes is too large");
    if (!LiesIn(static_cast<const Memory*>(mhandle), data, bytes)) return Refuse(Result::kInvalidArgument, kOutside);
    Request* ours = send->NewRequest(false, bytes);
    if (ours == nullptr) return Result::kSuccess;
    Process::Get().engine().Send(send->comm.get(), BufferIn(static_cast<const Memory*>(mhandle), data), bytes);
    *request = ours;
    return Result::kSuccess;
  });
}

Result CallReceive(void* recv_comm, int count, void** data, const size_t* capacities, void** mhandles, void** request) {
  *request = nullptr;
  return Guarded([&] {
    if (count != 1) return Refuse(Result::kInvalidUsage, "R2CC: grouped receives were not offered (maxRecvs is 1)");
    auto* recv = static_cast<RecvHandle*>(recv_comm);
    if (recv->comm->state.load(std::memory_order_acquire) == Comm::State::kFailed) return Failed(recv->comm.get());
    if (capacities[0] > kMessageBytesMax)
      return Refuse(Result::kInvalidArgument, "R2CC: a buffer of " + std::to_string(capacities[0]) + " bytes is too large");
    const auto* const memory = mhandles == nullptr ? nullptr : static_cast<const Memory*>(mhandles[0]);
    if (!LiesIn(memory, data[0], capacities[0])) return Refuse(Result::kInvalidArgument, kOutside);
    Request* ours = recv->NewRequest(true, 0);
    if (ours == nullptr) return Result::kSuccess;
    Process::Get().engine().Receive(recv->comm.get(), BufferIn(memory, data[0]), capacities[0]);
    *request = ours;
    return Result::kSuccess;
  });
}

Result CallTest(void* request, int* done, int* sizes) {
  auto* ours = static_cast<Request*>(request);
  *done = 0;
  if (fork_guard::InForkedChild()) return Result::kInternalError;
  return Caught([&] {
    Comm& comm = *ours->comm;
    Engine& engine = Process::Get().engine();
    const RequestState state =
        ours->receive ? engine.Look(static_cast<RecvComm*>(&comm), ours->number) : engine.Look(static_cast<SendComm*>(&comm), ours->number);
    if (state.failed) return Failed(&comm);
    if (!state.done) return Result::kSuccess;
    *done = 1;
    if (sizes != nullptr) sizes[0] = static_cast<int>(ours->receive ? comm.sizes[ours->number % kRequestsMax] : ours->sent_bytes);
    ours->used = false;
    return Result::kSuccess;
  });
}

Result CallCloseSend(void* send_comm) {
  return Guarded([&] {
    const std::unique_ptr<SendHandle> send(static_cast<SendHandle*>(send_comm));
    Process::Get().engine().Close(std::move(send->comm));
    return Result::kSuccess;
  });
}

Result CallCloseReceive(void* recv_comm) {
  return Guarded([&] {
    const std::unique_ptr<RecvHandle> recv(static_cast<RecvHandle*>(recv_comm));
    Process::Get().engine().Close(std::move(recv->comm));
    return Result::kSuccess;
  });
}

Result CallCloseListen(void* listen_comm) {
  return Guarded([&] {
    const std::unique_ptr<ListenHandle> listen(static_cast<ListenHandle*>(listen_comm));
    Process::Get().engine().CloseListen(listen->id);
    return Result::kSuccess;
  });
}

}  // namespace r2cc::net
