#include "tools/perf/collnet.h"

#include <dlfcn.h>

#include "netplugin/abi/collnet_v11.h"
#include "netplugin/abi/collnet_v8.h"
#include "tools/perf/net.h"

namespace r2cc::perf {
namespace {

using abi::Result;

// The calls that are the same in both versions, name for name.
template <typename Table>
class TableCollNet : public CollNet {
 public:
  explicit TableCollNet(const Table* table) : table_(table) {}

  Result Connect(std::vector<void*>* handles, int rank, void* listen_comm, void** coll_comm) override {
    return table_->connect(handles->data(), static_cast<int>(handles->size()), rank, listen_comm, coll_comm);
  }
  Result ReduceSupport(abi::DataType type, bool* supported) override {
    int answer = 0;
    const Result result = table_->reduce_support(type, abi::RedOp::kSum, &answer);
    *supported = answer != 0;
    return result;
  }
  Result RegisterMemory(void* comm, void* data, size_t size, void** mhandle) override {
    return table_->reg_mr(comm, data, size, abi::kPtrHost, mhandle);
  }
  Result DeregisterMemory(void* comm, void* mhandle) override { return table_->dereg_mr(comm, mhandle); }
  Result Test(void* request, bool* done) override {
    int finished = 0, size = 0;
    const Result result = table_->test(request, &finished, &size);
    *done = finished != 0;
    return result;
  }
  Result CloseColl(void* comm) override { return table_->close_coll(comm); }
  Result CloseListen(void* comm) override { return table_->close_listen(comm); }

 protected:
  const Table* const table_;
};

class CollNetV11 final : public TableCollNet<abi::CollNetTableV11> {
 public:
  using TableCollNet::TableCollNet;
  Result Init(uint64_t comm_id, abi::Logger log) override { return table_->init(&context_, comm_id, log); }
  Result Listen(int device, void* handle, void** listen_comm) override { return table_->listen(context_, device, handle, listen_comm); }
  Result AllReduce(void* comm, void* from, void* to, size_t count, abi::DataType type, void* from_mhandle, void* to_mhandle,
                   void** request) override {
    return table_->iallreduce(comm, from, to, count, type, abi::RedOp::kSum, from_mhandle, to_mhandle, request);
  }
  Result Finalize() override { return table_->finalize(context_); }

 private:
  void* context_ = nullptr;
};

class CollNetV8 final : public TableCollNet<abi::CollNetTableV8> {
 public:
  using TableCollNet::TableCollNet;
  Result Init(uint64_t, abi::Logger log) override { return table_->init(log); }
  Result Listen(int device, void* handle, void** listen_comm) override { return table_->listen(device, handle, listen_comm); }
  Result AllReduce(void* comm, void* from, void* to, size_t count, abi::DataType type, void* from_mhandle, void* to_mhandle,
                   void** request) override {
    return table_->iallreduce(comm, from, to, static_cast<int>(count), type, abi::RedOp::kSum, from_mhandle, to_mhandle, request);
  }
  Result Finalize() override { return Result::kSuccess; }  // version 8 has none
};

}  // namespace

Status LoadCollNet(const std::string& path, int version, std::unique_ptr<CollNet>* net) {
  void* library = nullptr;
  R2CC_PERF_RETURN_IF_ERROR(OpenPlugin(path, &library));
  const std::string name = "ncclCollNetPlugin_v" + std::to_string(version);
  const void* const table = dlsym(library, name.c_str());
  if (table == nullptr)
    return Status::Error("the library '" + path + "' exports no " + name + ": --collnet needs a plugin with a CollNet table");
  if (version == 11)
    *net = std::make_unique<CollNetV11>(static_cast<const abi::CollNetTableV11*>(table));
  else
    *net = std::make_unique<CollNetV8>(static_cast<const abi::CollNetTableV8*>(table));
  return {};
}

}  // namespace r2cc::perf
