// The job's part of a sending peer: flows and messages.
#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/transport_choice.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/send_peer.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

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
  if (session_.flows().at(flow).ledger.window_low()) PollAnswers(flow);
  if (sent) return;
  const MessageId message =
      session_.Post(flow, from, bytes, now(), host_->memory == nullptr ? kAllRails : host_->memory->RailsThatRead(from));
  const LinkId home = session_.flows().at(flow).home;
  pump_.MarkDirty(home);
  pump_.PumpHome(flow);
  // First it travels, then it is copied: the peer need not wait for that. No other link has seen it yet.
  const std::byte* copy = session_.Release(flow, message);
  if (copy != nullptr && links_.at(home) != nullptr) links_.at(home)->Retarget(flow, message, copy);
}

bool SendPeer::SendNow(FlowId flow, const Buffer& from, uint64_t bytes) {
  // Workers move it, by sockets of their own.
  if (has_workers() && bytes > tuning::kSmallBytesMost) return false;
  const LinkId home = session_.flows().at(flow).home;
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
  PollAnswers(flow);
  return session_.flows().has_changes();
}

// The flow's acknowledgements and grants come by the first link that is up.
void SendPeer::PollAnswers(FlowId flow) {
  const LinkId home = session_.flows().at(flow).home;
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto link = static_cast<LinkId>((home + i) % links_.size());
    if (session_.links().state(link) == InitiatorState::kUp && channels_.Poll(link)) return;
  }
}

void SendPeer::Close(FlowId flow) {
  RunInbox();
  if (!comms_.contains(flow)) return;
  const bool holds_buffers = session_.flows().at(flow).holds_buffers() && !IsActive(Mutant::kCloseDoesNotWait);
  session_.CloseFlow(flow, now());
  // A half-sent chunk still reads NCCL's buffer: its link ends, and the other flows on it replay. A device ends by itself what it was
  // given.
  if (holds_buffers)
    links_.ForEach([&](const LinkName& name, SendLink& link) {
      HasLock();
      if (!link.Holds(flow)) return;
      link.Release(flow) ? void(releasing_.push_back({flow, name, now()})) : Trouble(name, EvidenceCause::kFlowClosed);
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

}  // namespace r2cc::net
