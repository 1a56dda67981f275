#include "netplugin/link/send_session.h"

#include <algorithm>
#include <utility>

#include "base/core/overloaded.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

std::vector<TransportSet> LocalTransports(const SendSession::Options& options) {
  std::vector<TransportSet> transports = options.local_transports;
  transports.resize(options.local_rails, SetOf(TransportKind::kTcp));
  return transports;
}

}  // namespace

SendSession::SendSession(const Options& options, Nanos now)
    : options_(options),
      peer_node_(options.peer),
      flows_({options.chunk_base_bytes, std::min(options.eager_bytes, options.chunk_base_bytes)}, options.mode, options.memory, &regions_),
      detector_(options.silence),
      links_(LocalTransports(options),
             {&actions_, &control_queue_, &detector_, &flows_, &regions_, &faults_, options.retry_seed, options.all_links},
             options.observer, now),
      oob_(options.retry_seed),
      ticked_(now) {}

// ---- the job ----

FlowId SendSession::OpenFlow(uint64_t listen_id, uint16_t local_rail, Nanos now) {
  SendFlows::Flow* flow = flows_.Open(options_.flow_slots);
  if (flow == nullptr) {
    flow = flows_.Open();
    FailFlow(flow, "R2CC: " + std::to_string(options_.flow_slots) + " flows are open to peer " + peer_node_ +
                       ": as many as RDMA rails can distinguish; close some first");
    return flow->id;
  }
  flow->local_rail = local_rail;
  flow->home = links_.HomeLink(local_rail);
  if (failed_) {
    FailFlow(flow, "R2CC: peer " + peer_node_ + " is gone");
    return flow->id;
  }
  const frames::FlowOpen open{.flow = flow->id, .listen_id = listen_id, .rail = local_rail};
  control_queue_.SendUntilAnswered({FrameType::kFlowOpen, flow->id, 0}, open, flow->home, false, now);
  links_.FlowOpened(now);
  return flow->id;
}

MessageId SendSession::Post(FlowId id, const Buffer& from, uint64_t bytes, Nanos now, RailSet rails) {
  SendFlows::Flow* flow = flows_.Find(id);
  if (bytes > options_.chunk_base_bytes) links_.WantAll(now);
  // A small message is one chunk whatever the others' size.
  const uint32_t chunk_bytes = bytes <= options_.eager_bytes ? options_.chunk_base_bytes : ChunkBytes(flow->home, flow->is_dealt());
  const bool was_idle = flow->ledger.posted_through() == flow->ledger.acked_through();
  const MessageId message = flow->ledger.Post(from, bytes, chunk_bytes, rails);
  faults_.Posted(flow, was_idle, now);
  flows_.Note(flow);
  if (flow->ledger.overflowed())
    FailFlow(flow, "R2CC: a message is larger than the buffer that the receiver posted for it", plan::Failure::kBuffer);
  if (flow->ledger.wants_grant()) control_queue_.SendBest(frames::Want{id, message}, flow->home);
  return message;
}

uint32_t SendSession::ChunkBytes(LinkId home, bool dealt) const {
  if (!options_.chunks_follow_rate || home >= links_.count()) return options_.chunk_base_bytes;
  const bool striped = links_.spread() || (dealt && flows_.deals());
  return ChunkBytesOf(options_.chunk_base_bytes, striped ? 0 : links_.rate_bytes_per_s(home));
}

const std::byte* SendSession::Release(FlowId id, MessageId message) {
  SendFlows::Flow* flow = flows_.Find(id);
  const std::byte* copy = flow->ledger.Release(message);
  if (copy != nullptr) flows_.Change(flow);
  return copy;
}

void SendSession::CloseFlow(FlowId id, Nanos now) {
  SendFlows::Flow* flow = flows_.Find(id);
  if (flow == nullptr || flow->closing) return;
  if (failed_ || flow->state != FlowState::kOpen || flow->holds_buffers()) return EndFlow(id, now);
  flow->closing = true;
  closing_.push_back(id);
  EndClosing(now);
}

void SendSession::EndFlow(FlowId id, Nanos now) {
  const SendFlows::Flow& flow = flows_.at(id);
  const LinkId home = flow.home;
  faults_.Closed(flow, flow.state != FlowState::kFailed && flow.ledger.acked_through() == flow.ledger.posted_through(), now);
  SetDealt(id, false);
  flows_.Close(id);
  waiting_.erase(id);
  control_queue_.Answered({FrameType::kFlowOpen, id, 0});
  if (!failed_) control_queue_.SendUntilAnswered({FrameType::kFlowEnd, id, 0}, frames::FlowEnd{id}, home, false, now);
}

void SendSession::EndClosing(Nanos now) {
  std::erase_if(closing_, [&](FlowId id) {
    const SendFlows::Flow& flow = flows_.at(id);
    if (flow.state == FlowState::kOpen && flow.ledger.acked_through() < flow.ledger.posted_through()) return false;
    EndFlow(id, now);
    return true;
  });
}

void SendSession::FailFlow(SendFlows::Flow* flow, std::string error, plan::Failure failure) {
  if (flow->state == FlowState::kFailed) return;
  faults_.Failed(*flow);
  if (!flow->closing) {
    Add(SessionAction::Kind::kFailed).number = static_cast<uint64_t>(failure);
    Add(SessionAction::Kind::kWarn).text = error;
  }
  flows_.Fail(flow, std::move(error), !flow->closing);
}

void SendSession::FailAll(const std::string& error, plan::Failure failure) {
  failed_ = true;
  faults_.End(/*gone=*/failure == plan::Failure::kPeerGone);
  links_.Stop();
  control_queue_.Forget();
  waiting_.clear();
  // A peer that went after all flows were closed is an ordinary end.
  if (!flows_.empty()) {
    Add(SessionAction::Kind::kFailed).number = static_cast<uint64_t>(failure);
    Add(SessionAction::Kind::kWarn).text = error;
  }
  for (auto& [id, flow] : flows_.all())
    if (flow.state != FlowState::kFailed) flows_.Fail(&flow, error, true);
  for (const FlowId id : std::exchange(closing_, {})) flows_.Close(id);
}

// ---- frames ----

// A peer that breaks the protocol on a channel loses the channel; the connection is made anew.
void SendSession::Garbled(ChannelId channel, Nanos now) {
  Add(SessionAction::Kind::kWarn).text = "R2CC: peer " + peer_node_ + " broke the protocol";
  if (channel != kOobChannel) return links_.Trouble(static_cast<LinkId>(channel), EvidenceCause::kGarbled, now);
  CloseOob(now);
}

void SendSession::Receive(ChannelId channel, const Frame& frame, Nanos now) {
  // The acceptor speaks on a link's channel as soon as that is greeted; the link's other sockets may take longer.
  const bool opening = channel != kOobChannel && links_.state(static_cast<LinkId>(channel)) == InitiatorState::kConnecting;
  if (!control_queue_.up(channel) && !opening) return;
  detector_.Received(channel, now);
  Handle(channel, frame, now);
  if (!closing_.empty()) EndClosing(now);
}

void SendSession::Handle(ChannelId channel, const Frame& frame, Nanos now) {
  std::visit(
      Overloaded{
          [&](const FlowReport& report) { ReceiveReport(channel, report, now); }, [&](const frames::FlowOpened& opened) { Opened(opened); },
          [&](const frames::RegionAnnounced& announced) { ReceiveRegion(channel, announced.region, now); },
          [&](const frames::Bye& bye) { ReceiveBye(channel, bye, now); },
          [&](const frames::FlowEnded& ended) {
            control_queue_.Answered({FrameType::kFlowEnd, ended.flow, 0});
          },
          [&](const frames::Fenced& fenced) { ReceiveFenced(channel, fenced, now); },
          [&](const frames::Proved& proved) { links_.Proved(proved.link, proved.incarnation, proved.ok, now); },
          [&](const frames::Ping& ping) { control_queue_.Send(channel, frames::Pong{ping.number}); },
          [&](const frames::Pong& pong) { detector_.Pong(channel, pong.number, now); },
          [&](const frames::RailUp& up) { links_.RemoteRailUp(static_cast<uint16_t>(std::min<uint64_t>(up.rail, UINT16_MAX)), now); },
          [&](const auto&) { Garbled(channel, now); },  // an acceptor's
      },
      frame);
}

void SendSession::Opened(const frames::FlowOpened& opened) {
  control_queue_.Answered({FrameType::kFlowOpen, opened.flow, 0});
  SendFlows::Flow* const flow = flows_.Find(opened.flow);
  if (flow == nullptr || flow->state != FlowState::kOpening) return;
  if (!opened.ok && opened.cause == kSlotTaken)
    return FailFlow(flow,
                    "R2CC: peer " + peer_node_ + " has an open flow that RDMA rails cannot distinguish from this one: close that first");
  if (!opened.ok) return FailFlow(flow, "R2CC: peer " + peer_node_ + " does not listen for this flow any more", plan::Failure::kPeerGone);
  flow->state = FlowState::kOpen;
  flow->opened = true;
  if (links_.eager()) flow->ledger.set_eager_window(static_cast<uint32_t>(std::min<uint64_t>(opened.eager_messages, kEagerWindow)));
  flows_.Note(flow);
}

void SendSession::ReceiveReport(ChannelId channel, const FlowReport& report, Nanos now) {
  SendFlows::Flow* const flow = flows_.Find(report.flow);
  if (flow == nullptr) return;
  if (report.grants) return ReceiveGrant(channel, report, flow, now);
  if (!AckThrough(flow, report.placed_through, now)) return Garbled(channel, now);
  UseWaiting(flow, now);
  flows_.Note(flow);
}

void SendSession::ReceiveFenced(ChannelId channel, const frames::Fenced& fenced, Nanos now) {
  if (fenced.link >= links_.count()) return Garbled(channel, now);
  if (fenced.incarnation > links_.incarnation(fenced.link)) return;
  links_.PeerEnds(fenced, now);
  Arrived(fenced.arrivals, now);
  // What was in flight and is named in no part is to be replayed: so it takes all of them.
  if (!fenced_parts_.Add(fenced)) return;
  control_queue_.Send(channel, frames::FencedAck{.link = fenced.link, .incarnation = fenced.incarnation});
  links_.Fenced(fenced, now);
}

void SendSession::Arrived(std::span<const FlowArrivals> arrivals, Nanos now) {
  for (const FlowArrivals& arrived : arrivals)
    if (SendFlows::Flow* const flow = flows_.Find(arrived.flow); flow != nullptr && arrived.placed_through > flow->ledger.acked_through())
      AckThrough(flow, std::min(arrived.placed_through, flow->ledger.posted_through()), now);
  flows_.Arrived(arrivals);
}

bool SendSession::AckThrough(SendFlows::Flow* flow, MessageId through, Nanos now) {
  const MessageId before = flow->ledger.acked_through();
  const bool sound = flow->ledger.AckThrough(through);
  if (flow->ledger.acked_through() > before) faults_.Progressed(flow, now);
  return sound;
}

void SendSession::ReceiveGrant(ChannelId channel, const FlowReport& grant, SendFlows::Flow* flow, Nanos now) {
  if (!AckThrough(flow, grant.placed_through, now)) return Garbled(channel, now);
  flows_.Note(flow);
  bool waits = false;
  // What is placed already may be in memory that is gone.
  const MessageId acked = flow->ledger.acked_through();
  for (size_t i = acked > grant.placed_through ? acked - grant.placed_through : 0; i < grant.places.size(); ++i) {
    const RemoteRegions::Known known = regions_.Judge(grant.places[i], grant.capacities[i]);
    if (known == RemoteRegions::Known::kNever) return Garbled(channel, now);
    waits |= known == RemoteRegions::Known::kNotYet;
  }
  if (waits && !IsActive(Mutant::kKeyMissing)) {
    // Grants are whole: the one that reaches furthest says all that the others do.
    const auto end = [](const FlowReport& of) { return of.placed_through + of.capacities.size(); };
    const auto it = waiting_.find(flow->id);
    if (it == waiting_.end() || end(it->second.grant) <= end(grant)) waiting_[flow->id] = {channel, grant};
    return;
  }
  if (!flow->ledger.Grant(grant.placed_through, grant.capacities, grant.places)) return Garbled(channel, now);
  faults_.Granted(*flow, now);
  flows_.Note(flow);
  if (flow->ledger.overflowed())
    FailFlow(flow, "R2CC: a message is larger than the buffer that peer " + peer_node_ + " posted for it", plan::Failure::kBuffer);
}

void SendSession::ReceiveRegion(ChannelId channel, const std::shared_ptr<const Region>& region, Nanos now) {
  if (!regions_.Announced(region)) return Garbled(channel, now);
  control_queue_.Send(channel, frames::RegionKnown{.region = region->id, .generation = region->generation});
  for (auto& [id, flow] : flows_.all()) UseWaiting(&flow, now);
  // Chunks that were ready may go where they could not.
  for (auto& [id, flow] : flows_.all()) flows_.Note(&flow);
}

void SendSession::UseWaiting(SendFlows::Flow* flow, Nanos now) {
  const auto it = waiting_.find(flow->id);
  if (it == waiting_.end()) return;
  const Waiting waiting = std::move(it->second);
  waiting_.erase(it);
  ReceiveGrant(waiting.channel, waiting.grant, flow, now);
}

WriteTarget SendSession::TargetOf(LinkId link, const Chunk& chunk) const {
  const SendFlows::Flow* const flow = flows_.Find(chunk.flow);
  const BufferPlace* const place = flow == nullptr || chunk.eager ? nullptr : flow->ledger.PlaceOf(chunk.message);
  const Region* const region = place == nullptr ? nullptr : regions_.Find(place->region);
  if (region == nullptr) return {};
  return {region->base + place->offset + chunk.offset(), regions_.KeyOf(region->id, link)};
}

void SendSession::ReceiveBye(ChannelId channel, const frames::Bye& bye, Nanos now) {
  control_queue_.Send(channel, frames::ByeAck{bye.flow});
  SendFlows::Flow* const flow = flows_.Find(bye.flow);
  if (flow == nullptr) return;
  if (!AckThrough(flow, bye.placed_through, now)) return Garbled(channel, now);
  // Who closes it has opened it, though that word may be lost or still on its way.
  flow->opened = true;
  control_queue_.Answered({FrameType::kFlowOpen, bye.flow, 0});
  flows_.Note(flow);
  if (flow->state == FlowState::kFailed) return;
  // An orderly end is no news before the job sends on; with requests outstanding it is the peer's abort.
  if (flow->ledger.posted_through() > flow->ledger.acked_through())
    return FailFlow(flow, "R2CC: peer " + peer_node_ + " closed the flow with messages on their way", plan::Failure::kPeerClosed);
  flows_.Fail(flow, "R2CC: peer " + peer_node_ + " closed the flow", false);
}

// ---- channels and links ----

void SendSession::OobUp(const std::string& peer_node, std::span<const RailInfo> remote_rails, Nanos now) {
  control_queue_.Up(kOobChannel);
  oob_.Up();
  detector_.Up(kOobChannel, now);
  peer_node_ = peer_node;
  links_.SetRemoteRails(remote_rails, now);
  control_queue_.Resend(now);
}

void SendSession::OobDown(ProbeResult result, Nanos now) {
  const bool was_up = control_queue_.up(kOobChannel);
  oob_.Down(result, now);
  if (was_up) {
    control_queue_.Down(kOobChannel);
    detector_.Down(kOobChannel);
    control_queue_.Resend(now);
  }
  CheckLost(now);
}

void SendSession::PeerProbed(ProbeResult result, Nanos now) {
  probed_ = now;
  if (result == ProbeResult::kRefused && detector_.AllSilent(now))
    FailAll("R2CC: peer " + peer_node_ + " is gone: it answers on no channel, and its address refuses connections",
            plan::Failure::kPeerGone);
}

void SendSession::LinkTrouble(LinkId link, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  links_.Trouble(link, incarnation, cause, now);
  CheckLost(now);
}

void SendSession::LocalRail(uint16_t rail, bool up, Nanos now) {
  links_.LocalRail(rail, up, now);
  CheckLost(now);
}

}  // namespace r2cc::net
