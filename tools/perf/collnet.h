// Calls a CollNet plugin through one interface for all versions of its table.
#ifndef R2CC_TOOLS_PERF_COLLNET_H_
#define R2CC_TOOLS_PERF_COLLNET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/abi/nccl_types.h"
#include "tools/perf/status.h"

namespace r2cc::perf {

// The calls of a CollNet table that a sum needs, as NCCL's proxy makes them.
class CollNet {
 public:
  virtual ~CollNet() = default;

  virtual abi::Result Init(uint64_t comm_id, abi::Logger log) = 0;
  virtual abi::Result Listen(int device, void* handle, void** listen_comm) = 0;
  // Waits for the other members.
  virtual abi::Result Connect(std::vector<void*>* handles, int rank, void* listen_comm, void** coll_comm) = 0;
  virtual abi::Result ReduceSupport(abi::DataType type, bool* supported) = 0;
  virtual abi::Result RegisterMemory(void* comm, void* data, size_t size, void** mhandle) = 0;
  virtual abi::Result DeregisterMemory(void* comm, void* mhandle) = 0;
  virtual abi::Result AllReduce(void* comm, void* from, void* to, size_t count, abi::DataType type, void* from_mhandle, void* to_mhandle,
                                void** request) = 0;
  virtual abi::Result Test(void* request, bool* done) = 0;
  virtual abi::Result CloseColl(void* comm) = 0;
  virtual abi::Result CloseListen(void* comm) = 0;
  virtual abi::Result Finalize() = 0;
};

// As LoadNet(): the table of the version that the net table has, 11 or 8.
Status LoadCollNet(const std::string& path, int version, std::unique_ptr<CollNet>* net);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_COLLNET_H_
