#include "netplugin/link/recv_session.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/core/overloaded.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

}  // namespace

RecvSession::RecvSession(const Options& options, Nanos now)
    : options_(options),
      links_(options.local_rails, options.remote_rails, options.peer, {&actions_, &control_queue_, &flows_}, options.observer, now),
      ticked_(now),
      last_received_(now) {}

// ---- the job ----

void RecvSession::AcceptFlow(FlowId id, LinkId home) {
  opening_.erase(id);
  RecvFlows::Flow* flow = flows_.Open(id, home);
  if (failed_) flows_.Fail(flow, "R2CC: peer " + options_.peer + " is gone");
  control_queue_.SendBest(frames::FlowOpened{.flow = id, .ok = true, .eager_messages = kEagerWindow}, home);
}

void RecvSession::RefuseFlow(FlowId id) {
  opening_.erase(id);
  control_queue_.SendBest(frames::FlowOpened{.flow = id}, 0);
}

bool RecvSession::SlotTaken(FlowId flow) const {
  const uint32_t slots = options_.flow_slots;
  if (slots == 0) return false;
  if (flows_.WithSlot(flow % slots, slots) != nullptr) return true;
  return std::any_of(opening_.begin(), opening_.end(), [&](FlowId other) { return other != flow && other % slots == flow % slots; });
}

MessageId RecvSession::Post(FlowId id, const Buffer& to, uint64_t capacity_bytes, Nanos) {
  RecvFlows::Flow* flow = flows_.Find(id);
  const MessageId message = flow->ledger.Post(to, capacity_bytes);
  if (flow->ledger.overflowed()) Overflowed(flow);
  // What had arrived before it is placed with the post.
  if (flow->ledger.placed_through() > message)
    flows_.Touch(flow);
  else
    flows_.TouchPosted(flow);
  return message;
}

void RecvSession::FailFlow(RecvFlows::Flow* flow, std::string error, plan::Failure failure) {
  if (!flow->error.empty()) return;
  Add(SessionAction::Kind::kFailed).number = static_cast<uint64_t>(failure);
  Add(SessionAction::Kind::kWarn).text = error;
  flows_.Fail(flow, std::move(error));
}

void RecvSession::Overflowed(RecvFlows::Flow* flow) {
  FailFlow(flow, "R2CC: a message of peer " + options_.peer + " is larger than the buffer posted for it", plan::Failure::kBuffer);
}

void RecvSession::CloseFlow(FlowId id, const std::vector<Writer>& writers, Nanos now) {
  const RecvFlows::Flow* flow = flows_.Find(id);
  if (flow == nullptr) return;
  const MessageId placed_through = flow->ledger.placed_through();
  const LinkId home = flow->home;
  flows_.Close(id);
  retiring_.Add(id, placed_through, writers, now);
  for (const Writer& writer : writers)
    if ((failed_ || !writer.orders || IsActive(Mutant::kTornByClose)) && links_.is(writer.link, writer.incarnation))
      LinkTrouble(writer.link, writer.incarnation, EvidenceCause::kFlowClosed, now);
  if (failed_ || IsActive(Mutant::kByeLost)) return flows_.Forget(id);
  control_queue_.SendUntilAnswered({FrameType::kBye, id, 0}, frames::Bye{id, placed_through}, home, true, now);
}

// The pong is posted after all that the peer had posted on the link, and it posts nothing more.
void RecvSession::AskWriters() {
  retiring_.ForEachToAsk([this](const Writer& writer, uint64_t ping) {
    // One whose channel is not there is asked when it is, or is about to end.
    if (!links_.is(writer.link, writer.incarnation) || !control_queue_.open(writer.link)) return;
    control_queue_.Send(writer.link, frames::Ping{ping});
  });
}

void RecvSession::EndWriters(Nanos now) {
  AskWriters();
  for (const Writer& writer : retiring_.TakeLate(now))
    if (links_.is(writer.link, writer.incarnation)) LinkTrouble(writer.link, writer.incarnation, EvidenceCause::kFlowClosed, now);
}

void RecvSession::FailAll(const std::string& error, plan::Failure failure) {
  failed_ = true;
  control_queue_.Forget();
  links_.Stop();
  if (!flows_.empty()) {
    Add(SessionAction::Kind::kFailed).number = static_cast<uint64_t>(failure);
    Add(SessionAction::Kind::kWarn).text = error;
  }
  flows_.FailAll(error);
}

void RecvSession::Suspicion(Nanos now) {
  flows_.RepeatReports();
  control_queue_.Resend(now);
}

// ---- frames ----

// A peer that breaks the protocol on a channel loses the channel; the connection is made anew.
void RecvSession::Garbled(ChannelId channel, Nanos now) {
  Add(SessionAction::Kind::kWarn).text = "R2CC: peer " + options_.peer + " broke the protocol";
  if (channel != kOobChannel)
    return LinkTrouble(static_cast<LinkId>(channel), links_.incarnation(static_cast<LinkId>(channel)), EvidenceCause::kGarbled, now);
  Add(SessionAction::Kind::kCloseOob);
  OobDown(now);
}

void RecvSession::Receive(ChannelId channel, const Frame& frame, Nanos now) {
  if (!control_queue_.open(channel)) return;
  last_received_ = now;
  if (channel == kOobChannel) oob_silent_since_ = 0;
  std::visit(Overloaded{
                 [&](const frames::FlowOpen& open) { OpenFlow(channel, open); },
                 [&](const frames::Want& want) {
                   RecvFlows::Flow* flow = flows_.Find(want.flow);
                   if (flow == nullptr) return;
                   // It may have overtaken what comes before, and the buffer may not be posted yet.
                   flow->wanted_through = want.message + 1;
                   flows_.Touch(flow);
                 },
                 [&](const frames::Fence& fence) { links_.Fence(fence, channel, now) ? LinksChanged(now) : Garbled(channel, now); },
                 [&](const frames::FencedAck& ack) { control_queue_.AnsweredThrough(FrameType::kFenced, ack.link, ack.incarnation); },
                 [&](const frames::RegionKnown& known) {
                   if (known.region == 0 || known.region > UINT32_MAX) return Garbled(channel, now);
                   const auto id = static_cast<RegionId>(known.region);
                   if (regions_.Confirmed(id, known.generation))
                     control_queue_.Send(channel,
                                         frames::RegionAnnounced{std::make_shared<Region>(Region{.id = id, .generation = Region::kGone})});
                 },
                 [&](const frames::Ping& ping) { control_queue_.Send(channel, frames::Pong{ping.number}); },
                 [&](const frames::Pong& pong) {
                   if (channel != kOobChannel) retiring_.Answered(static_cast<LinkId>(channel), pong.number);
                 },
                 [&](const frames::FlowEnd& end) { EndFlow(channel, end.flow); },
                 [&](const frames::ByeAck& ack) {
                   control_queue_.Answered({FrameType::kBye, ack.flow, 0});
                   flows_.Forget(ack.flow);
                   retiring_.Confirmed(ack.flow);
                   AskWriters();
                 },
                 [&](const auto&) { Garbled(channel, now); },  // an initiator's
             },
             frame);
}

void RecvSession::OpenFlow(ChannelId channel, const frames::FlowOpen& open) {
  if (flows_.Find(open.flow) != nullptr)
    return control_queue_.Send(channel, frames::FlowOpened{.flow = open.flow, .ok = true, .eager_messages = kEagerWindow});
  if (flows_.closed(open.flow) || flows_.size() >= kFlowsMax) return;
  // Soon it is free: the peer asks again.
  FlowId other = 0;
  MessageId through = 0;
  if (const uint32_t slots = options_.flow_slots; slots != 0 && retiring_.Find(open.flow % slots, slots, &other, &through)) return;
  if (SlotTaken(open.flow)) {
    if (std::exchange(refused_, open.flow) != open.flow)
      Add(SessionAction::Kind::kWarn).text =
          "R2CC: flow " + std::to_string(open.flow) + " of peer " + options_.peer +
          " is refused: RDMA rails cannot distinguish it from another open flow; that flow must be closed first";
    return control_queue_.Send(channel, frames::FlowOpened{.flow = open.flow, .cause = kSlotTaken});
  }
  if (!opening_.insert(open.flow).second) return;
  SessionAction& action = Add(SessionAction::Kind::kFlowOpened);
  for (LinkId link = 0; link < links_.home_count() && action.link == 0; ++link)
    if (links_.remote_rail(link) == open.rail) action.link = link;
  action.flow = open.flow;
  action.number = open.listen_id;
}

void RecvSession::EndFlow(ChannelId channel, FlowId id) {
  control_queue_.Send(channel, frames::FlowEnded{id});
  RecvFlows::Flow* const flow = flows_.Find(id);
  if (flow == nullptr) return;
  if (flow->may_be_placed())
    FailFlow(flow, "R2CC: peer " + options_.peer + " closed the flow with receives outstanding", plan::Failure::kPeerClosed);
  else
    flows_.Fail(flow, "R2CC: peer " + options_.peer + " closed the flow");
}

// ---- channels and links ----

void RecvSession::OobUp(Nanos now) {
  control_queue_.Up(kOobChannel);
  last_received_ = now;
  oob_silent_since_ = 0;
  control_queue_.Resend(now);
}

void RecvSession::OobDown(Nanos now) {
  if (!control_queue_.up(kOobChannel)) return;
  control_queue_.Down(kOobChannel);
  Suspicion(now);
  CheckLost(now);
}

RecvSession::Admission RecvSession::Greet(LinkId link, Incarnation incarnation, uint16_t local_rail, uint16_t remote_rail, Nanos now) {
  last_received_ = now;
  const Admission admission = links_.Greet(link, incarnation, local_rail, remote_rail, now);
  LinksChanged(now);
  return admission;
}

void RecvSession::LinkClosed(LinkId link, Incarnation incarnation, bool ok, Nanos now) {
  if (ok) retiring_.Ended(link, incarnation);
  links_.Closed(link, incarnation, ok, now);
}

void RecvSession::LinkTrouble(LinkId link, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  links_.Trouble(link, incarnation, cause, now);
  LinksChanged(now);
}

void RecvSession::LocalRail(uint16_t rail, bool up, Nanos now) {
  links_.LocalRail(rail, up, now);
  LinksChanged(now);
}

void RecvSession::LocalVerdict(uint16_t rail, bool failed, Nanos now) {
  links_.LocalVerdict(rail, failed, now);
  LinksChanged(now);
}

void RecvSession::RemoteVerdict(uint16_t rail, bool failed, Nanos now) {
  links_.RemoteVerdict(rail, failed, now);
  LinksChanged(now);
}

void RecvSession::RailsStalled(RailPair rails, Nanos now) {
  links_.RailsStalled(rails, now);
  LinksChanged(now);
}

void RecvSession::PathVerdict(RailPair rails, bool broken, Nanos now) {
  links_.PathVerdict(rails, broken, now);
  LinksChanged(now);
}

void RecvSession::LinksChanged(Nanos now) {
  const bool has_link = links_.any_up();
  if (std::exchange(had_link_, has_link) && !has_link) CheckLost(now);
}

// ---- bulk ----

bool RecvSession::Begin(LinkId id, Incarnation incarnation, const Chunk& header, std::byte** destination) {
  const RecvFlows::Flow* const flow = flows_.Find(header.flow);
  if (flow != nullptr && flow->ledger.OnDevice(header.message)) return false;
  return BeginChunk(id, incarnation, header, destination);
}

bool RecvSession::BeginChunk(LinkId id, Incarnation incarnation, const Chunk& header, std::byte** destination) {
  *destination = nullptr;
  if (!links_.is(id, incarnation)) return false;
  received_bulk_ = true;
  RecvFlows::Flow* flow = flows_.Find(header.flow);
  // A flow closed here: its bytes are read and forgotten.
  if (flow == nullptr) return true;
  const RecvLedger::Verdict verdict = flow->ledger.Begin(header, PathEpochOf(id), destination);
  if (flow->ledger.overflowed()) Overflowed(flow);
  return verdict != RecvLedger::Verdict::kRefuse;
}

bool RecvSession::Finish(LinkId id, Incarnation incarnation, const Chunk& header) {
  if (!links_.is(id, incarnation)) return false;
  RecvFlows::Flow* flow = flows_.Find(header.flow);
  if (flow == nullptr) return false;
  const bool whole = flow->ledger.Finish(header.message, header.index, PathEpochOf(id));
  // Its buffer was posted while it arrived.
  if (flow->ledger.overflowed()) Overflowed(flow);
  if (whole) flows_.Touch(flow);
  for (const RecvLedger::Flush& flush : flow->ledger.TakeFlushes()) {
    SessionAction& action = Add(SessionAction::Kind::kFlush);
    action.link = static_cast<LinkId>(flush.epoch);
    action.incarnation = links_.incarnation(action.link);
    action.flush = flush.name;
    action.buffer = flush.to;
  }
  return whole;
}

void RecvSession::Flushed(LinkId id, Incarnation incarnation, const FlushName& name) {
  RecvFlows::Flow* const flow = links_.is(id, incarnation) ? flows_.Find(name.flow) : nullptr;
  if (flow != nullptr && flow->ledger.Flushed(name, PathEpochOf(id))) flows_.Touch(flow);
}

RecvSession::Arrival RecvSession::Placed(LinkId id, Incarnation incarnation, const Chunk& header) {
  const RecvFlows::Flow* const flow = flows_.Find(header.flow);
  // Its buffers are not the job's yet.
  if (flow == nullptr && retiring_.contains(header.flow)) return Arrival::kPlaced;
  if (flow == nullptr || header.message < flow->ledger.placed_through()) return Arrival::kLate;
  std::byte* destination = nullptr;
  if (!BeginChunk(id, incarnation, header, &destination)) return Arrival::kRefused;
  if (destination != nullptr) Finish(id, incarnation, header);
  return Arrival::kPlaced;
}

}  // namespace r2cc::net
