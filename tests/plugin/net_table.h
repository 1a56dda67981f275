// Any of the plugin's net tables, v7 to v12, behind one interface: called as NCCL's proxy calls it.
#ifndef R2CC_TESTS_PLUGIN_NET_TABLE_H_
#define R2CC_TESTS_PLUGIN_NET_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::plugin_test {

constexpr int kVersionLeast = 7;
constexpr int kVersionNewest = 12;

class Net {
 public:
  virtual ~Net() = default;
  virtual std::string name() const = 0;
  // From v11 on a context of its own; before, once per process and nothing to keep.
  virtual abi::Result Init(void** context) = 0;
  virtual abi::Result Finalize(void* context) = 0;
  virtual abi::Result Devices(int* count) = 0;
  virtual abi::Result DeviceName(int device, std::string* name) = 0;
  virtual abi::Result Listen(void* context, int device, void* handle, void** listen_comm) = 0;
  virtual abi::Result Connect(void* context, int device, void* handle, void** send_comm) = 0;
  virtual abi::Result Accept(void* listen_comm, void** recv_comm) = 0;
  virtual abi::Result Register(void* comm, void* data, size_t bytes, int type, void** mhandle) = 0;
  virtual abi::Result Deregister(void* comm, void* mhandle) = 0;
  virtual abi::Result Send(void* send_comm, void* data, size_t bytes, void* mhandle, void** request) = 0;
  virtual abi::Result Receive(void* recv_comm, void* data, size_t bytes, void* mhandle, void** request) = 0;
  virtual abi::Result Flush(void* recv_comm, void* data, int bytes, void* mhandle, void** request) = 0;
  virtual abi::Result Test(void* request, int* done, int* bytes) = 0;
  virtual abi::Result CloseSend(void* comm) = 0;
  virtual abi::Result CloseReceive(void* comm) = 0;
  virtual abi::Result CloseListen(void* comm) = 0;
};

// The plugin's library, opened as NCCL opens it; with R2CC_MUTANT in the environment the one in which that mutant is switched on (see
// netplugin/flow/mutant.h). Ends the process if it cannot be.
void* OpenLibrary();
// The table of `version` in it; null if it exports none.
std::unique_ptr<Net> NetOf(void* library, int version);
// Where that table lies in memory.
const void* TableOf(void* library, int version);

}  // namespace r2cc::plugin_test

#endif  // R2CC_TESTS_PLUGIN_NET_TABLE_H_
