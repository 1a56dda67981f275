// Allocates memory for ledgers and pools, and copies bytes into and out of buffers. The host of a session provides it. The base class
// handles host memory without a virtual call, because most messages are small and each is copied once.
#ifndef R2CC_NETPLUGIN_FLOW_MEMORY_OPS_H_
#define R2CC_NETPLUGIN_FLOW_MEMORY_OPS_H_

#include <cstddef>
#include <cstring>
#include <memory>

#include "base/core/check.h"
#include "netplugin/flow/memory.h"

namespace r2cc::net {

// Called with the lock of the peer that has the messages. One object may serve all peers.
class MemoryOps {
 public:
  virtual ~MemoryOps() = default;

  // Host memory of this process. Its content is undefined.
  std::shared_ptr<std::byte[]> Allocate(size_t bytes) const { return std::make_shared_for_overwrite<std::byte[]>(bytes); }

  // The buffers must not overlap. The copy is done when it returns.
  void Copy(const Buffer& to, const Buffer& from, size_t bytes) {
    if (bytes == 0) return;
    if (!to.is_device() && !from.is_device())
      std::memcpy(to.data, from.data, bytes);
    else
      CopyDevice(to, from, bytes);
  }

 protected:
  // At least one of the two buffers is not host memory.
  virtual void CopyDevice(const Buffer& /*to*/, const Buffer& /*from*/, size_t /*bytes*/) {
    R2CC_CHECK(false);  // no transport has registered such memory
  }
};

// For callers that have only host memory.
inline MemoryOps host_memory;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_MEMORY_OPS_H_
