// How ledgers and pools get memory, and bytes into and out of buffers: the host of a session gives it. What it does by itself is for host
// memory; that costs nobody a virtual call, as most messages are small and each is copied once.
#ifndef R2CC_NETPLUGIN_FLOW_MEMORY_OPS_H_
#define R2CC_NETPLUGIN_FLOW_MEMORY_OPS_H_

#include <cstddef>
#include <cstring>
#include <memory>

#include "base/core/check.h"
#include "netplugin/flow/memory.h"

namespace r2cc::net {

// With the lock of the peer whose messages they are. One object may serve all peers.
class MemoryOps {
 public:
  virtual ~MemoryOps() = default;

  // Host memory of the process's own, with anything in it.
  std::shared_ptr<std::byte[]> Allocate(size_t bytes) const { return std::make_shared_for_overwrite<std::byte[]>(bytes); }

  // The buffers do not overlap. Done when it returns.
  void Copy(const Buffer& to, const Buffer& from, size_t bytes) {
    if (bytes == 0) return;
    if (!to.is_device() && !from.is_device())
      std::memcpy(to.data, from.data, bytes);
    else
      CopyDevice(to, from, bytes);
  }

 protected:
  // At least one of the two is not host memory.
  virtual void CopyDevice(const Buffer& /*to*/, const Buffer& /*from*/, size_t /*bytes*/) {
    R2CC_CHECK(false);  // no transport has registered such memory
  }
};

// For whoever has host memory alone.
inline MemoryOps host_memory;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_MEMORY_OPS_H_
