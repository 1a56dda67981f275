// A Verbs that fails where a test sets it, over any other. It counts what it injected: a test that meant to inject checks that.
//
// Faults are counted down from the moment when they are set. It has the threads of the Verbs below it; faults are set while no call runs.
#ifndef R2CC_BASE_CORE_VERBS_FAULTY_VERBS_H_
#define R2CC_BASE_CORE_VERBS_FAULTY_VERBS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::verbs {

enum class Call : uint8_t {
  kOpen,
  kQueryDevice,
  kQueryPort,
  kAllocateDomain,
  kRegister,
  kDeregister,
  kCreateCompletionQueue,
  kCreateQueuePair,
  kInit,
  kReadyToReceive,
  kReadyToSend,
  kError,  // to the error state
  kReset,
  kDestroyQueuePair,
  kPostSend,
  kPostReceive,
  kPoll,
};

class FaultyVerbs : public Verbs {
 public:
  explicit FaultyVerbs(Verbs* under) : under_(under) {}

  // ---- faults ----

  // The `nth` call from now on, 1 for the next, and `more` after it return `error` and do nothing.
  void FailCall(Call call, int nth, int error, int more = 0) { failing_[call] = {nth, error, more}; }
  // Each such call fails while `*fails`. `*fails` outlives this object, or Mend() comes before its end.
  void FailWhile(Call call, const bool* fails, int error) { while_[call] = {fails, error}; }
  // Each such call returns success and does nothing while `*pretends`, as a device in an internal error does: those that change or end
  // something.
  void PretendWhile(Call call, const bool* pretends) { pretended_[call] = pretends; }
  // Ends all failures and pretences that were set for a while; their variables may go.
  void Mend() {
    while_.clear();
    pretended_.clear();
  }
  // Each such call takes this long; 0: no time. It does not sleep: the caller's loop takes the time with TakeTime().
  void SlowCall(Call call, Nanos takes) { takes == 0 ? void(slow_.erase(call)) : void(slow_[call] = takes); }
  Nanos TakeTime() { return std::exchange(taken_, 0); }
  // The `nth` completion that is polled from now on, 1 for the next, has `status`, and its queue pair goes to the error state.
  void FailCompletion(int nth, Status status) { completion_ = {nth, status}; }
  // The device, or one of its queues, reports this event next.
  void Inject(ContextId context, const AsyncEvent& event) { events_[context].push_back(event); }

  uint64_t injected() const { return injected_; }

  // ---- Verbs ----

  int ForkInit() override { return under_->ForkInit(); }
  int Devices(std::vector<DeviceInfo>* devices) override { return under_->Devices(devices); }
  int Open(const std::string& device, ContextId* context, int* async_fd) override;
  int Close(ContextId context) override { return under_->Close(context); }
  int QueryDevice(ContextId context, DeviceLimits* limits) override;
  int QueryPort(ContextId context, uint8_t port, PortInfo* info) override;
  int QueryGids(ContextId context, uint8_t port, std::vector<GidEntry>* entries) override {
    return under_->QueryGids(context, port, entries);
  }
  int ReadAsyncEvent(ContextId context, AsyncEvent* event) override;
  void AckAsyncEvent(ContextId context, const AsyncEvent& event) override;
  int AllocateDomain(ContextId context, DomainId* domain) override;
  int FreeDomain(DomainId domain) override { return under_->FreeDomain(domain); }
  int Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) override;
  int RegisterDmaBuf(DomainId domain, int fd, uint64_t offset, uint64_t bytes, uint64_t base, uint32_t access,
                     MemoryRegion* region) override;
  int Deregister(MemoryRegionId region) override;
  int CreateChannel(ContextId context, CompletionChannelId* channel, int* fd) override {
    return under_->CreateChannel(context, channel, fd);
  }
  int DestroyChannel(CompletionChannelId channel) override { return under_->DestroyChannel(channel); }
  int TakeCompletionEvents(CompletionChannelId channel) override { return under_->TakeCompletionEvents(channel); }
  int CreateCompletionQueue(ContextId context, uint32_t entries, CompletionChannelId channel, CompletionQueueId* queue) override;
  int DestroyCompletionQueue(CompletionQueueId queue) override { return under_->DestroyCompletionQueue(queue); }
  int Arm(CompletionQueueId queue, bool solicited_only) override { return under_->Arm(queue, solicited_only); }
  int Poll(CompletionQueueId queue, std::span<Completion> completions, size_t* taken) override;
  int CreateQueuePair(DomainId domain, const QueuePairLimits& limits, QueuePairInfo* info) override;
  int Init(QueuePairId queue_pair, uint8_t port, uint16_t pkey_index, uint32_t access) override;
  int MakeReadyToReceive(QueuePairId queue_pair, const ReadyToReceive& attributes) override;
  int MakeReadyToSend(QueuePairId queue_pair, const ReadyToSend& attributes) override;
  int SetState(QueuePairId queue_pair, QueuePairState state) override;
  int QueryState(QueuePairId queue_pair, QueuePairState* state) override { return under_->QueryState(queue_pair, state); }
  int DestroyQueuePair(QueuePairId queue_pair) override;
  int PostSend(QueuePairId queue_pair, std::span<const SendRequest> requests, size_t* posted) override;
  int PostReceive(QueuePairId queue_pair, std::span<const ReceiveRequest> requests, size_t* posted) override;

 private:
  struct Failing {
    int nth = 0;
    int error = 0;
    int more = 0;
  };
  // The value that the call returns instead; 0: it is made.
  int Fault(Call call);
  bool Pretends(Call call);

  Verbs* const under_;
  std::map<Call, Failing> failing_;
  struct While {
    const bool* fails = nullptr;
    int error = 0;
  };
  std::map<Call, While> while_;
  std::map<Call, const bool*> pretended_;
  std::map<Call, Nanos> slow_;
  Nanos taken_ = 0;
  struct {
    int nth = 0;
    Status status = Status::kSuccess;
  } completion_;
  std::map<ContextId, std::deque<AsyncEvent>> events_;
  // By completion queue and number, which devices choose each for itself.
  std::map<std::pair<CompletionQueueId, uint32_t>, QueuePairId> pairs_;
  uint64_t injected_ = 0;
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_FAULTY_VERBS_H_
