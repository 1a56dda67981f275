// Implements the Verbs of one host on the fake fabric. One thread; nothing blocks, and a call that would wait forever fails and is counted
// (FakeFabric). Descriptors are -1: FakeFabric::OnWake() reports that there is something to look at. Numbers of queue pairs that are gone
// are used again first, so that a user who confuses two of them is found out.
#ifndef R2CC_BASE_CORE_VERBS_FAKE_VERBS_H_
#define R2CC_BASE_CORE_VERBS_FAKE_VERBS_H_

#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::verbs {

class FakeVerbs final : public Verbs {
 public:
  // Counts of posts and polls: for tests that count work.
  struct Counts {
    uint64_t sends = 0, receives = 0, send_doorbells = 0, receive_doorbells = 0, completions = 0;
  };

  FakeVerbs(FakeFabric* fabric, int host) : fabric_(fabric), host_(host) {}

  const Counts& counts() const { return counts_; }

  int ForkInit() override { return 0; }
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
  FakeDevice* DeviceOf(ContextId context);
  // The queue pair if it exists; otherwise null and `*error`.
  FakeQueuePair* Live(QueuePairId id, int* error);
  template <typename Id>
  Id NewId() {
    return static_cast<Id>(++fabric_->last_id_);
  }

  FakeFabric* const fabric_;
  const int host_;
  Counts counts_;
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_FAKE_VERBS_H_
