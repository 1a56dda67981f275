// Verbs over libibverbs, which is opened at run time: where the machine has none, there are no devices, and that is all.
//
// Posts and polls go through the operations of the context that the library gave, as the calls of its header do, and through nothing else.
// One doorbell holds for 32 requests with 64 segments between them; a longer list rings more often. A request has 64 segments at most.
#ifndef R2CC_BASE_CORE_VERBS_LIBIBVERBS_H_
#define R2CC_BASE_CORE_VERBS_LIBIBVERBS_H_

#include <memory>
#include <string>
#include <vector>

#include "base/core/verbs/device_mappings.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::verbs {

struct LibibverbsCalls;

class Libibverbs : public Verbs {
 public:
  struct Options {
    std::string library = "libibverbs.so.1";
    std::string sysfs = "/sys";  // names the kernel's drivers
  };

  explicit Libibverbs(const Options& options);
  Libibverbs() : Libibverbs(Options{}) {}
  ~Libibverbs() override;
  Libibverbs(const Libibverbs&) = delete;
  Libibverbs& operator=(const Libibverbs&) = delete;

  // One line on why there are no devices, if the machine has some; empty: the library is there.
  const std::string& missing() const { return missing_; }

  int ForkInit() override;
  int Devices(std::vector<DeviceInfo>* devices) override;
  int Open(const std::string& device, ContextId* context, int* async_fd) override;
  int Close(ContextId context) override;
  int QueryDevice(ContextId context, DeviceLimits* limits) override;
  int QueryPort(ContextId context, uint8_t port, PortInfo* info) override;
  int QueryGids(ContextId context, uint8_t port, std::vector<GidEntry>* entries) override;
  int ReadAsyncEvent(ContextId context, AsyncEvent* event) override;
  void AckAsyncEvent(ContextId context, const AsyncEvent& event) override;
  int AllocateDomain(ContextId context, DomainId* domain) override;
  int FreeDomain(DomainId domain) override;
  int Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) override;
  int RegisterDmaBuf(DomainId domain, int fd, uint64_t offset, uint64_t bytes, uint64_t base, uint32_t access,
                     MemoryRegion* region) override;
  int Deregister(MemoryRegionId region) override;
  int CreateChannel(ContextId context, CompletionChannelId* channel, int* fd) override;
  int DestroyChannel(CompletionChannelId channel) override;
  int TakeCompletionEvents(CompletionChannelId channel) override;
  int CreateCompletionQueue(ContextId context, uint32_t entries, CompletionChannelId channel, CompletionQueueId* queue) override;
  int DestroyCompletionQueue(CompletionQueueId queue) override;
  int Arm(CompletionQueueId queue, bool solicited_only) override;
  int Poll(CompletionQueueId queue, std::span<Completion> completions, size_t* taken) override;
  int CreateQueuePair(DomainId domain, const QueuePairLimits& limits, QueuePairInfo* info) override;
  int Init(QueuePairId queue_pair, uint8_t port, uint16_t pkey_index, uint32_t access) override;
  int MakeReadyToReceive(QueuePairId queue_pair, const ReadyToReceive& attributes) override;
  int MakeReadyToSend(QueuePairId queue_pair, const ReadyToSend& attributes) override;
  int SetState(QueuePairId queue_pair, QueuePairState state) override;
  int QueryState(QueuePairId queue_pair, QueuePairState* state) override;
  int DestroyQueuePair(QueuePairId queue_pair) override;
  int PostSend(QueuePairId queue_pair, std::span<const SendRequest> requests, size_t* posted) override;
  int PostReceive(QueuePairId queue_pair, std::span<const ReceiveRequest> requests, size_t* posted) override;

 private:
  const Options options_;
  std::string missing_;
  std::unique_ptr<LibibverbsCalls> library_;  // null: missing
  DeviceMappings mappings_;
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_LIBIBVERBS_H_
