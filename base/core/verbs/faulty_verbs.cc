#include "base/core/verbs/faulty_verbs.h"

#include <cerrno>
#include <utility>

namespace r2cc::verbs {
namespace {

// In `raw`: it was never read from the device, and is not given back to it.
constexpr uint32_t kInjected = 0xfa017;

}  // namespace

int FaultyVerbs::Fault(Call call) {
  if (const auto slow = slow_.find(call); slow != slow_.end()) {
    taken_ += slow->second;
    ++injected_;
  }
  if (const auto failing = while_.find(call); failing != while_.end() && *failing->second.fails) {
    ++injected_;
    return failing->second.error;
  }
  const auto it = failing_.find(call);
  if (it == failing_.end()) return 0;
  Failing& failing = it->second;
  if (failing.nth > 1) {
    --failing.nth;
    return 0;
  }
  ++injected_;
  const int error = failing.error;
  if (failing.more-- == 0) failing_.erase(it);
  return error;
}

bool FaultyVerbs::Pretends(Call call) {
  const auto it = pretended_.find(call);
  if (it == pretended_.end() || !*it->second) return false;
  ++injected_;
  return true;
}

int FaultyVerbs::QueryDevice(ContextId context, DeviceLimits* limits) {
  const int error = Fault(Call::kQueryDevice);
  return error != 0 ? error : under_->QueryDevice(context, limits);
}

int FaultyVerbs::QueryPort(ContextId context, uint8_t port, PortInfo* info) {
  const int error = Fault(Call::kQueryPort);
  return error != 0 ? error : under_->QueryPort(context, port, info);
}

int FaultyVerbs::AllocateDomain(ContextId context, DomainId* domain) {
  const int error = Fault(Call::kAllocateDomain);
  return error != 0 ? error : under_->AllocateDomain(context, domain);
}

int FaultyVerbs::Open(const std::string& device, ContextId* context, int* async_fd) {
  const int error = Fault(Call::kOpen);
  return error != 0 ? error : under_->Open(device, context, async_fd);
}

int FaultyVerbs::ReadAsyncEvent(ContextId context, AsyncEvent* event) {
  auto& events = events_[context];
  if (events.empty()) return under_->ReadAsyncEvent(context, event);
  *event = events.front();
  event->raw = kInjected;
  events.pop_front();
  ++injected_;
  return 0;
}

void FaultyVerbs::AckAsyncEvent(ContextId context, const AsyncEvent& event) {
  if (event.raw != kInjected) under_->AckAsyncEvent(context, event);
}

int FaultyVerbs::Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) {
  const int error = Fault(Call::kRegister);
  return error != 0 ? error : under_->Register(domain, base, bytes, access, region);
}

int FaultyVerbs::RegisterDmaBuf(DomainId domain, int fd, uint64_t offset, uint64_t bytes, uint64_t base, uint32_t access,
                                MemoryRegion* region) {
  const int error = Fault(Call::kRegister);
  return error != 0 ? error : under_->RegisterDmaBuf(domain, fd, offset, bytes, base, access, region);
}

int FaultyVerbs::Deregister(MemoryRegionId region) {
  const int error = Fault(Call::kDeregister);
  if (error == 0 && Pretends(Call::kDeregister)) return 0;
  return error != 0 ? error : under_->Deregister(region);
}

int FaultyVerbs::CreateCompletionQueue(ContextId context, uint32_t entries, CompletionChannelId channel, CompletionQueueId* queue) {
  const int error = Fault(Call::kCreateCompletionQueue);
  return error != 0 ? error : under_->CreateCompletionQueue(context, entries, channel, queue);
}

int FaultyVerbs::Poll(CompletionQueueId queue, std::span<Completion> completions, size_t* taken) {
  *taken = 0;
  if (const int error = Fault(Call::kPoll); error != 0) return error;
  const int error = under_->Poll(queue, completions, taken);
  for (size_t i = 0; i < *taken && completion_.nth > 0; ++i) {
    if (--completion_.nth > 0) continue;
    Completion& completion = completions[i];
    completion = {.wr_id = completion.wr_id, .status = completion_.status, .queue_pair_number = completion.queue_pair_number};
    ++injected_;
    if (const auto it = pairs_.find({queue, completion.queue_pair_number}); it != pairs_.end())
      under_->SetState(it->second, QueuePairState::kError);
  }
  return error;
}

int FaultyVerbs::CreateQueuePair(DomainId domain, const QueuePairLimits& limits, QueuePairInfo* info) {
  if (const int error = Fault(Call::kCreateQueuePair); error != 0) return error;
  const int error = under_->CreateQueuePair(domain, limits, info);
  if (error == 0)
    for (const CompletionQueueId queue : {limits.send_completions, limits.receive_completions}) pairs_[{queue, info->number}] = info->id;
  return error;
}

int FaultyVerbs::Init(QueuePairId queue_pair, uint8_t port, uint16_t pkey_index, uint32_t access) {
  const int error = Fault(Call::kInit);
  return error != 0 ? error : under_->Init(queue_pair, port, pkey_index, access);
}

int FaultyVerbs::MakeReadyToReceive(QueuePairId queue_pair, const ReadyToReceive& attributes) {
  const int error = Fault(Call::kReadyToReceive);
  return error != 0 ? error : under_->MakeReadyToReceive(queue_pair, attributes);
}

int FaultyVerbs::MakeReadyToSend(QueuePairId queue_pair, const ReadyToSend& attributes) {
  const int error = Fault(Call::kReadyToSend);
  return error != 0 ? error : under_->MakeReadyToSend(queue_pair, attributes);
}

int FaultyVerbs::SetState(QueuePairId queue_pair, QueuePairState state) {
  const Call call = state == QueuePairState::kReset ? Call::kReset : Call::kError;
  const int error = Fault(call);
  if (error == 0 && Pretends(call)) return 0;
  return error != 0 ? error : under_->SetState(queue_pair, state);
}

int FaultyVerbs::DestroyQueuePair(QueuePairId queue_pair) {
  if (const int error = Fault(Call::kDestroyQueuePair); error != 0) return error;
  if (Pretends(Call::kDestroyQueuePair)) return 0;
  const int error = under_->DestroyQueuePair(queue_pair);
  if (error == 0) std::erase_if(pairs_, [queue_pair](const auto& entry) { return entry.second == queue_pair; });
  return error;
}

int FaultyVerbs::PostSend(QueuePairId queue_pair, std::span<const SendRequest> requests, size_t* posted) {
  *posted = 0;
  const int error = Fault(Call::kPostSend);
  return error != 0 ? error : under_->PostSend(queue_pair, requests, posted);
}

int FaultyVerbs::PostReceive(QueuePairId queue_pair, std::span<const ReceiveRequest> requests, size_t* posted) {
  *posted = 0;
  const int error = Fault(Call::kPostReceive);
  return error != 0 ? error : under_->PostReceive(queue_pair, requests, posted);
}

}  // namespace r2cc::verbs
