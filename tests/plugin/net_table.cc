#include "tests/plugin/net_table.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "netplugin/abi/net_v10.h"
#include "netplugin/abi/net_v11.h"
#include "netplugin/abi/net_v12.h"
#include "netplugin/abi/net_v7.h"
#include "netplugin/abi/net_v8.h"
#include "netplugin/abi/net_v9.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

// Relative to a test's runfiles.
constexpr char kLibrary[] = "netplugin/libnccl-net-r2cc.so";
constexpr char kMutantLibrary[] = "netplugin/plugin.so";

__attribute__((format(printf, 5, 6))) void Log(abi::DebugLogLevel, unsigned long, const char*, int, const char* format, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "%s\n", line);
}

Result IgnoreProfilerEvent(void** event, int, void*, int64_t, void*) {
  if (event != nullptr) *event = nullptr;
  return Result::kSuccess;
}

// NCCL leaves whatever was there before in a request that irecv is to set.
void* const kGarbage = reinterpret_cast<void*>(uintptr_t{0x5a5a});

// One body for all versions: what differs are the shapes of the calls, and the compiler knows them.
template <typename Table, typename Properties>
class TableNet final : public Net {
 public:
  explicit TableNet(const void* table) : t_(static_cast<const Table*>(table)) {}

  std::string name() const override { return t_->name; }
  Result Init(void** context) override {
    *context = nullptr;
    abi::NetCommConfig config{abi::kUndefined};
    if constexpr (std::is_invocable_v<decltype(t_->init), abi::Logger>)
      return t_->init(Log);
    else if constexpr (std::is_invocable_v<decltype(t_->init), abi::Logger, abi::ProfilerCallback>)
      return t_->init(Log, IgnoreProfilerEvent);
    else
      return t_->init(context, uint64_t{7}, &config, Log, IgnoreProfilerEvent);
  }
  Result Finalize(void* context) override {
    if constexpr (requires { t_->finalize; })
      return t_->finalize(context);
    else
      return Result::kSuccess;  // there is none before v11
  }
  Result Devices(int* count) override { return t_->devices(count); }
  Result DeviceName(int device, std::string* name) override {
    Properties properties{};
    const Result result = t_->get_properties(device, &properties);
    if (result == Result::kSuccess) *name = properties.name;
    return result;
  }
  Result Listen(void* context, int device, void* handle, void** listen_comm) override {
    if constexpr (std::is_invocable_v<decltype(t_->listen), int, void*, void**>)
      return t_->listen(device, handle, listen_comm);
    else
      return t_->listen(context, device, handle, listen_comm);
  }
  Result Connect(void* context, int device, void* handle, void** send_comm) override {
    abi::NetDeviceHandle* offload = nullptr;
    abi::NetCommConfig config{abi::kUndefined};
    using Function = decltype(t_->connect);
    if constexpr (std::is_invocable_v<Function, int, void*, void**>)
      return t_->connect(device, handle, send_comm);
    else if constexpr (std::is_invocable_v<Function, int, void*, void**, abi::NetDeviceHandle**>)
      return t_->connect(device, handle, send_comm, &offload);
    else if constexpr (std::is_invocable_v<Function, int, abi::NetCommConfig*, void*, void**, abi::NetDeviceHandle**>)
      return t_->connect(device, &config, handle, send_comm, &offload);
    else
      return t_->connect(context, device, handle, send_comm, &offload);
  }
  Result Accept(void* listen_comm, void** recv_comm) override {
    abi::NetDeviceHandle* offload = nullptr;
    if constexpr (std::is_invocable_v<decltype(t_->accept), void*, void**>)
      return t_->accept(listen_comm, recv_comm);
    else
      return t_->accept(listen_comm, recv_comm, &offload);
  }
  Result Register(void* comm, void* data, size_t bytes, int type, void** mhandle) override {
    return t_->reg_mr(comm, data, static_cast<int>(bytes), type, mhandle);
  }
  Result Deregister(void* comm, void* mhandle) override { return t_->dereg_mr(comm, mhandle); }
  Result Send(void* send_comm, void* data, size_t bytes, void* mhandle, void** request) override {
    if constexpr (std::is_invocable_v<decltype(t_->isend), void*, void*, size_t, int, void*, void**>)
      return t_->isend(send_comm, data, static_cast<int>(bytes), 0, mhandle, request);
    else
      return t_->isend(send_comm, data, bytes, 0, mhandle, nullptr, request);
  }
  Result Receive(void* recv_comm, void* data, size_t bytes, void* mhandle, void** request) override {
    *request = kGarbage;
    int tag = 0;
    using Function = decltype(t_->irecv);
    if constexpr (std::is_invocable_v<Function, void*, int, void**, int*, int*, void**, void**>) {
      int capacity = static_cast<int>(bytes);
      return t_->irecv(recv_comm, 1, &data, &capacity, &tag, &mhandle, request);
    } else if constexpr (std::is_invocable_v<Function, void*, int, void**, size_t*, int*, void**, void**>) {
      return t_->irecv(recv_comm, 1, &data, &bytes, &tag, &mhandle, request);
    } else {
      void* phandle = nullptr;
      return t_->irecv(recv_comm, 1, &data, &bytes, &tag, &mhandle, &phandle, request);
    }
  }
  Result Flush(void* recv_comm, void* data, int bytes, void* mhandle, void** request) override {
    *request = nullptr;
    return t_->iflush(recv_comm, 1, &data, &bytes, &mhandle, request);
  }
  Result Test(void* request, int* done, int* bytes) override { return t_->test(request, done, bytes); }
  Result CloseSend(void* comm) override { return t_->close_send(comm); }
  Result CloseReceive(void* comm) override { return t_->close_recv(comm); }
  Result CloseListen(void* comm) override { return t_->close_listen(comm); }

 private:
  const Table* const t_;
};

}  // namespace

void* OpenLibrary() {
  void* library = dlopen(std::getenv("R2CC_MUTANT") == nullptr ? kLibrary : kMutantLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(1);
}

const void* TableOf(void* library, int version) { return dlsym(library, ("ncclNetPlugin_v" + std::to_string(version)).c_str()); }

std::unique_ptr<Net> NetOf(void* library, int version) {
  const void* table = TableOf(library, version);
  if (table == nullptr) return nullptr;
  switch (version) {
    case 7: return std::make_unique<TableNet<abi::NetTableV7, abi::NetPropertiesV7>>(table);
    case 8: return std::make_unique<TableNet<abi::NetTableV8, abi::NetPropertiesV8>>(table);
    case 9: return std::make_unique<TableNet<abi::NetTableV9, abi::NetPropertiesV9>>(table);
    case 10: return std::make_unique<TableNet<abi::NetTableV10, abi::NetPropertiesV9>>(table);
    case 11: return std::make_unique<TableNet<abi::NetTableV11, abi::NetPropertiesV11>>(table);
    case 12: return std::make_unique<TableNet<abi::NetTableV12, abi::NetPropertiesV12>>(table);
    default: return nullptr;
  }
}

}  // namespace r2cc::plugin_test
