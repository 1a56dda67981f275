// Connects a queue pair to itself: the device reads and writes memory of this process, to prove a path or to flush it.
//
// An RDMA read of GPU memory by a device completes after all earlier writes of the same device to that memory. A completion in host memory
// proves nothing of the kind: it may overtake the bytes on their way to the GPU.
//
// Make() and the destructor may block. All other calls belong to the owner's thread. Nothing throws; a call that fails returns an errno.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_LOOPBACK_PAIR_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_LOOPBACK_PAIR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "netplugin/transport/verbs/device.h"
#include "netplugin/transport/verbs/gid.h"
#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

class LoopbackPair {
 public:
  struct Options {
    uint8_t port = 1;
    GidWish gid;
    uint32_t psn = 0;  // random, 24 bits
  };
  // It reaches the regions of the domain.
  LoopbackPair(std::shared_ptr<Domain> domain, const Options& options)
      : domain_(std::move(domain)), device_(domain_->device().get()), options_(options) {}
  ~LoopbackPair();
  LoopbackPair(const LoopbackPair&) = delete;
  LoopbackPair& operator=(const LoopbackPair&) = delete;

  // How many requests may be outstanding.
  static constexpr uint32_t kRequests = 64;

  // On failure false, and one line in `*error`.
  bool Make(std::string* error);

  // Copies `bytes` from registered memory to registered memory of this device. ENOMEM: kRequests are outstanding.
  int Write(uint64_t to, uint32_t remote_key, const void* from, uint32_t local_key, uint32_t bytes);
  // Reads one byte, whose value is not used.
  int Flush(const void* at, uint32_t remote_key);

  // Requests end in their order. `*ended`: how many more have ended. False: one has failed, or the device has, and the others never end.
  bool Poll(uint32_t* ended);

 private:
  int Post(SendKind kind, const Segment& segment, uint64_t remote_address, uint32_t remote_key);

  const std::shared_ptr<Domain> domain_;
  Device* const device_;
  const Options options_;
  CompletionQueueId queue_{};
  QueuePairInfo info_;
  // The destination of reads: a page of its own.
  struct alignas(4096) Page {
    std::array<std::byte, 4096> bytes;
  };
  std::unique_ptr<Page> page_;
  MemoryRegion region_;
  uint32_t outstanding_ = 0;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_LOOPBACK_PAIR_H_
