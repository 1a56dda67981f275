#include "tools/perf/net.h"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

#include "netplugin/abi/net_v11.h"
#include "netplugin/abi/net_v8.h"

namespace r2cc::perf {
namespace {

using abi::Result;

// NCCL always hands over a callback; a plugin may call it without asking.
Result IgnoreProfilerEvent(void** event, int, void*, int64_t, void*) {
  if (event != nullptr) *event = nullptr;
  return Result::kSuccess;
}

// The calls that are the same in both versions, name for name.
template <typename Table>
class TableNet : public Net {
 public:
  explicit TableNet(const Table* table) : table_(table) {}

  std::string name() const override { return table_->name; }
  Result Devices(int* count) override { return table_->devices(count); }
  Result Accept(void* listen_comm, void** recv_comm) override {
    abi::NetDeviceHandle* device = nullptr;
    return table_->accept(listen_comm, recv_comm, &device);
  }
  Result RegisterMemory(void* comm, void* data, size_t size, void** mhandle) override {
    return table_->reg_mr(comm, data, size, abi::kPtrHost, mhandle);
  }
  Result DeregisterMemory(void* comm, void* mhandle) override { return table_->dereg_mr(comm, mhandle); }
  Result Test(void* request, bool* done, int* size) override {
    int finished = 0;
    const Result result = table_->test(request, &finished, size);
    *done = finished != 0;
    return result;
  }
  Result CloseSend(void* comm) override { return table_->close_send(comm); }
  Result CloseReceive(void* comm) override { return table_->close_recv(comm); }
  Result CloseListen(void* comm) override { return table_->close_listen(comm); }

 protected:
  template <typename Properties>
  Result PropertiesOf(int device, DeviceProperties* properties) {
    Properties raw{};
    const Result result = table_->get_properties(device, &raw);
    if (result != Result::kSuccess) return result;
    properties->name = raw.name != nullptr ? raw.name : "?";
    properties->speed_mbps = raw.speed_mbps;
    return result;
  }

  const Table* const table_;
};

class NetV11 final : public TableNet<abi::NetTableV11> {
 public:
  using TableNet::TableNet;
  int version() const override { return 11; }
  Result Init(uint64_t comm_id, abi::Logger log) override {
    abi::NetCommConfig config{abi::kUndefined};
    return table_->init(&context_, comm_id, &config, log, IgnoreProfilerEvent);
  }
  Result GetProperties(int device, DeviceProperties* properties) override {
    return PropertiesOf<abi::NetPropertiesV11>(device, properties);
  }
  Result Listen(int device, void* handle, void** listen_comm) override { return table_->listen(context_, device, handle, listen_comm); }
  Result Connect(int device, void* handle, void** send_comm) override {
    abi::NetDeviceHandle* offload = nullptr;
    return table_->connect(context_, device, handle, send_comm, &offload);
  }
  Result Send(void* send_comm, void* data, size_t size, int tag, void* mhandle, void** request) override {
    return table_->isend(send_comm, data, size, tag, mhandle, nullptr, request);
  }
  Result Receive(void* recv_comm, void* data, size_t size, int tag, void* mhandle, void** request) override {
    void* phandle = nullptr;
    return table_->irecv(recv_comm, 1, &data, &size, &tag, &mhandle, &phandle, request);
  }
  Result Finalize() override { return table_->finalize(context_); }

 private:
  void* context_ = nullptr;
};

class NetV8 final : public TableNet<abi::NetTableV8> {
 public:
  using TableNet::TableNet;
  int version() const override { return 8; }
  Result Init(uint64_t, abi::Logger log) override { return table_->init(log); }
  Result GetProperties(int device, DeviceProperties* properties) override { return PropertiesOf<abi::NetPropertiesV8>(device, properties); }
  Result Listen(int device, void* handle, void** listen_comm) override { return table_->listen(device, handle, listen_comm); }
  Result Connect(int device, void* handle, void** send_comm) override {
    abi::NetDeviceHandle* offload = nullptr;
    return table_->connect(device, handle, send_comm, &offload);
  }
  Result Send(void* send_comm, void* data, size_t size, int tag, void* mhandle, void** request) override {
    return table_->isend(send_comm, data, static_cast<int>(size), tag, mhandle, request);
  }
  Result Receive(void* recv_comm, void* data, size_t size, int tag, void* mhandle, void** request) override {
    int bytes = static_cast<int>(size);
    return table_->irecv(recv_comm, 1, &data, &bytes, &tag, &mhandle, request);
  }
  Result Finalize() override { return Result::kSuccess; }  // version 8 has none
};

}  // namespace

Status OpenPlugin(const std::string& path, void** library) {
  std::vector<std::string> candidates = {path};
  if (path.find('/') == std::string::npos) {
    if (access(path.c_str(), R_OK) == 0) candidates.insert(candidates.begin(), "./" + path);
    candidates.push_back("libnccl-net-" + path + ".so");
  }
  std::string why;
  for (const std::string& candidate : candidates) {
    *library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (*library != nullptr) return {};
    if (why.empty()) why = dlerror();
  }
  return Status::Error("cannot load the plugin '" + path + "': " + why + "; give --plugin the path of a libnccl-net-*.so");
}

Status LoadNet(const std::string& path, int version, std::unique_ptr<Net>* net) {
  void* library = nullptr;
  R2CC_PERF_RETURN_IF_ERROR(OpenPlugin(path, &library));
  if (version == 0 || version == 11) {
    if (const void* table = dlsym(library, "ncclNetPlugin_v11"); table != nullptr) {
      *net = std::make_unique<NetV11>(static_cast<const abi::NetTableV11*>(table));
      return {};
    }
  }
  if (version == 0 || version == 8) {
    if (const void* table = dlsym(library, "ncclNetPlugin_v8"); table != nullptr) {
      *net = std::make_unique<NetV8>(static_cast<const abi::NetTableV8*>(table));
      return {};
    }
  }
  const std::string wanted =
      version == 0 ? "neither ncclNetPlugin_v11 nor ncclNetPlugin_v8" : "no ncclNetPlugin_v" + std::to_string(version);
  return Status::Error("the library '" + path + "' cannot be driven by r2cc-perf: it exports " + wanted);
}

}  // namespace r2cc::perf
