// Calls a net plugin through one interface for all versions of its table.
#ifndef R2CC_TOOLS_PERF_NET_H_
#define R2CC_TOOLS_PERF_NET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "netplugin/abi/nccl_types.h"
#include "tools/perf/status.h"

namespace r2cc::perf {

struct DeviceProperties {
  std::string name;
  int speed_mbps = 0;
};

// The calls of a net table, as nccl-net's proxy makes them. Threads: as the plugin's table; see the caller of each.
class Net {
 public:
  virtual ~Net() = default;

  virtual std::string name() const = 0;
  virtual int version() const = 0;
  virtual abi::Result Init(uint64_t comm_id, abi::Logger log) = 0;
  virtual abi::Result Devices(int* count) = 0;
  virtual abi::Result GetProperties(int device, DeviceProperties* properties) = 0;
  virtual abi::Result Listen(int device, void* handle, void** listen_comm) = 0;
  virtual abi::Result Connect(int device, void* handle, void** send_comm) = 0;
  virtual abi::Result Accept(void* listen_comm, void** recv_comm) = 0;
  virtual abi::Result RegisterMemory(void* comm, void* data, size_t size, void** mhandle) = 0;
  virtual abi::Result DeregisterMemory(void* comm, void* mhandle) = 0;
  virtual abi::Result Send(void* send_comm, void* data, size_t size, int tag, void* mhandle, void** request) = 0;
  virtual abi::Result Receive(void* recv_comm, void* data, size_t size, int tag, void* mhandle, void** request) = 0;
  virtual abi::Result Test(void* request, bool* done, int* size) = 0;
  virtual abi::Result CloseSend(void* comm) = 0;
  virtual abi::Result CloseReceive(void* comm) = 0;
  virtual abi::Result CloseListen(void* comm) = 0;
  virtual abi::Result Finalize() = 0;
};

// Opens a plugin by path, or by name as NCCL does: NAME, then libnccl-net-NAME.so. The library stays loaded: plugins may have threads.
Status OpenPlugin(const std::string& path, void** library);
// The same, and takes its table of `version`: 11 or 8; 0: 11, otherwise 8.
Status LoadNet(const std::string& path, int version, std::unique_ptr<Net>* net);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_NET_H_
