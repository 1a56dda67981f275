// The job's part of a sending peer: flows and messages.
#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/link/transport_choice.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/send_peer.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

// A device that reads longer from the buffers of a closed flow loses the link: the job waits for them.
constexpr Nanos kReleaseMost = 250 * kNanosPerMs;  // more than the 134 ms after which it sends a lost packet again

}  // namespace

// ---- the job ----

FlowId SendPeer::Open(uint64_t listen_id, uint16_t local_rail, Comm* comm) {
  const FlowId flow = session_.OpenFlow(listen_id, local_rail, now());
  *comms_.Add(flow) = comm;
  return flow;
}

void SendPeer::Post(FlowId flow, const Buffer& from, uint64_t bytes) {
  if (!comms_.contains(flow)) return;
  const bool sent = SendNow(flow, from, bytes);
  // Nobody looks for acknowledgements while all messages are small: who sends on looks before the window is used up, and not on the way of
  // the message.
  if (session_.WindowLow(flow)) HearAnswers(flow);
  if (sent) return;
  const MessageId message = session_.Post(flow, from, bytes, now(), RailsThatRead(from));
  const LinkId home = session_.home(flow);
  pump_.MarkDirty(home);
  pump_.PumpHome(flow);
  // First it travels, then it is copied: the peer need not wait for that. No other link has seen it yet.
  const std::byte* copy = session_.Release(flow, message);
  if (copy != nullptr && links_.at(home) != nullptr) links_.at(home)->Retarget(flow, message, copy);
}

// A device whose registration failed reads nothing there: its link would be lost with each message.
RailSet SendPeer::RailsThatRead(const Buffer& from) const {
  if (from.memory == nullptr || from.memory->id == 0 || host_->memory == nullptr) return kAllRails;
  const auto region = host_->memory->Find(from.memory->id);
  return region == nullptr ? kAllRails : RailsOf(*region);
}

RailSet SendPeer::RailsOf(const Region& region) {
  if (region.keys.empty()) return kAllRails;
  RailSet rails = 0;
  for (size_t rail = 0; rail < region.keys.size(); ++rail)
    for (const RailEndpoint& key : region.keys[rail])
      if (!key.bytes.empty()) rails |= RailSet{1} << rail;
  return rails;
}

bool SendPeer::SendNow(FlowId flow, const Buffer& from, uint64_t bytes) {
  // Workers move it, by sockets of their own.
  if (has_workers() && bytes > WorkloadClassifier::kSmallBytesMost) return false;
  const LinkId home = session_.home(flow);
  SendLink* const link = links_.at(home);
  if (link == nullptr) return false;
  MessageId message = 0;
  const SendLink::Sent sent = link->SendNow([&](Chunk* chunk) {
    if (!session_.PostEagerly(flow, from, bytes, links_.name(home).incarnation, chunk)) return false;
    message = chunk->message;
    return true;
  });
  if (sent == SendLink::Sent::kNot) return false;
  const std::byte* copy = session_.Release(flow, message);
  if (sent == SendLink::Sent::kBufferInUse) link->Retarget(flow, message, copy);
  return true;
}

bool SendPeer::FastPath(FlowId flow) {
  if (links_.size() == 0 || !comms_.contains(flow)) return false;
  pump_.PumpHome(flow);
  HearAnswers(flow);
  return session_.has_changes();
}

// The flow's acknowledgements and grants come by the first link that is up.
void SendPeer::HearAnswers(FlowId flow) {
  const LinkId home = session_.home(flow);
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto link = static_cast<LinkId>((home + i) % links_.size());
    if (session_.link_state(link) == InitiatorState::kUp && channels_.Poll(link)) return;
  }
}

void SendPeer::Close(FlowId flow) {
  RunInbox();
  if (!comms_.contains(flow)) return;
  const bool holds_buffers = session_.HoldsBuffers(flow) && !IsActive(Mutant::kCloseDoesNotWait);
  session_.CloseFlow(flow, now());
  // A half-sent chunk still reads NCCL's buffer: its link ends, and the other flows on it replay. A device ends by itself what it was
  // given.
  if (holds_buffers)
    links_.ForEach([&](const LinkName& name, SendLink& link) {
      if (!link.Holds(flow)) return;
      if (link.Release(flow))
        releasing_.push_back({flow, name, now()});
      else
        Trouble(name, EvidenceCause::kFlowClosed);
    });
  comms_.Erase(flow);
  RunToCompletion();
}

bool SendPeer::Holds(FlowId flow) const {
  for (const auto& slot : links_.closing())
    if (slot.link->Holds(flow)) return true;
  return std::any_of(releasing_.begin(), releasing_.end(), [&](const Releasing& one) {
    return one.flow == flow && links_.alive(one.name) && links_.at(one.name.link)->Holds(flow);
  });
}

void SendPeer::LookAtReleasing() {
  std::erase_if(releasing_, [this](const Releasing& one) {
    if (!links_.alive(one.name) || !links_.at(one.name.link)->Holds(one.flow)) return true;
    if (now() - one.since < kReleaseMost) return false;
    Trouble(one.name, EvidenceCause::kFlowClosed);
    return true;
  });
}

}  // namespace r2cc::net
