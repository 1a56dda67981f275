#include "netplugin/link/send_session.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "plan/model.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr Nanos kBackOffLeast = 50 * kNanosPerMs;
constexpr Nanos kBackOffMost = 2 * kNanosPerSecond;
// A link that was up for less is flapping: its back-off goes on doubling.
constexpr Nanos kSteadyAfter = 2 * kNanosPerSecond;
constexpr Nanos kConnectLimit = kNanosPerSecond;

Nanos Doubled(Nanos back_off) { return std::clamp(back_off * 2, kBackOffLeast, kBackOffMost); }

}  // namespace

SendSession::SendSession(const Options& options, Nanos now)
    : options_(options), peer_node_(options.peer), local_rail_up_(options.local_rails, true), watch_(options.silence), no_link_since_(now) {
  R2CC_CHECK(options.local_rails > 0);
}

// ---- the job ----

FlowId SendSession::OpenFlow(uint64_t listen_id, uint16_t local_rail, Nanos now) {
  const FlowId id = next_flow_++;
  Flow& flow = flows_[id];
  flow.local_rail = local_rail;
  flow.home = HomeLink(local_rail);
  flow.ledger = std::make_unique<SendLedger>(id, options_.chunk_base_bytes, &order_);
  if (failed_) {
    FailFlow(&flow, "R2CC: peer " + peer_node_ + " is gone");
    return id;
  }
  Frame frame{.type = FrameType::kFlowOpen, .flow = id};
  frame.number = listen_id;
  frame.cause = local_rail;
  courier_.Keep({FrameType::kFlowOpen, id, 0}, std::move(frame), flow.home, false, now);
  return id;
}

SendSession::FlowState SendSession::state(FlowId flow) const { return flows_.at(flow).state; }
const std::string& SendSession::error(FlowId flow) const { return flows_.at(flow).error; }
MessageId SendSession::AckedThrough(FlowId flow) const { return flows_.at(flow).ledger->acked_through(); }

MessageId SendSession::Post(FlowId id, const void* data, uint64_t bytes, Nanos) {
  Flow& flow = flows_.at(id);
  const MessageId message = flow.ledger->Post(data, bytes);
  if (flow.ledger->overflowed()) FailFlow(&flow, "R2CC: a message is larger than the buffer that the receiver posted for it");
  return message;
}

void SendSession::CloseFlow(FlowId id, Nanos now) {
  const auto it = flows_.find(id);
  if (it == flows_.end()) return;
  const LinkId home = it->second.home;
  flows_.erase(it);
  courier_.Answered({FrameType::kFlowOpen, id, 0});
  if (!failed_) courier_.Keep({FrameType::kFlowEnd, id, 0}, Frame{.type = FrameType::kFlowEnd, .flow = id}, home, false, now);
}

bool SendSession::outstanding() const {
  if (!courier_.idle()) return true;
  return std::any_of(flows_.begin(), flows_.end(), [](const auto& entry) {
    const Flow& flow = entry.second;
    return flow.state != FlowState::kFailed && flow.ledger->posted_through() > flow.ledger->acked_through();
  });
}

void SendSession::FailFlow(Flow* flow, std::string error) {
  if (flow->state == FlowState::kFailed) return;
  flow->state = FlowState::kFailed;
  flow->error = std::move(error);
  Add(Action::Kind::kWarn).text = flow->error;
}

void SendSession::FailAll(const std::string& error) {
  failed_ = true;
  courier_.Forget();
  // A peer that went after all flows were closed is an ordinary end.
  if (!flows_.empty()) Add(Action::Kind::kWarn).text = error;
  for (auto& [id, flow] : flows_) {
    if (flow.state == FlowState::kFailed) continue;
    flow.state = FlowState::kFailed;
    flow.error = error;
  }
}

// ---- frames ----

LinkId SendSession::HomeLink(uint16_t local_rail) const {
  for (LinkId link = 0; link < links_.size(); ++link)
    if (links_[link].local_rail == local_rail) return link;
  return 0;
}

void SendSession::LaneLost(Lane lane, Nanos now) {
  courier_.Down(lane);
  watch_.Down(lane);
  courier_.Resend(now);
}

void SendSession::Garbled(Lane lane, Nanos now) {
  if (lane == kOobLane) {
    Add(Action::Kind::kWarn).text = "R2CC: peer " + peer_node_ + " broke the protocol on the out-of-band lane";
    return;
  }
  LinkTrouble(static_cast<LinkId>(lane), links_[lane].incarnation, EvidenceCause::kGarbled, now);
}

void SendSession::Receive(Lane lane, const Frame& frame, Nanos now) {
  if (lane != kOobLane && (lane >= static_cast<Lane>(links_.size()) || !courier_.up(lane))) return;
  watch_.Heard(lane, now);
  const auto it = flows_.find(frame.flow);
  Flow* flow = it == flows_.end() ? nullptr : &it->second;
  switch (frame.type) {
    case FrameType::kFlowOpened:
      courier_.Answered({FrameType::kFlowOpen, frame.flow, 0});
      if (flow == nullptr || flow->state != FlowState::kOpening) return;
      if (frame.ok)
        flow->state = FlowState::kOpen;
      else
        FailFlow(flow, "R2CC: peer " + peer_node_ + " does not listen for this flow any more");
      return;
    case FrameType::kGrant:
      if (flow == nullptr) return;
      if (!flow->ledger->Grant(frame.message, frame.numbers)) return Garbled(lane, now);
      if (flow->ledger->overflowed())
        FailFlow(flow, "R2CC: a message is larger than the buffer that peer " + peer_node_ + " posted for it");
      return;
    case FrameType::kAck:
      if (flow != nullptr && !flow->ledger->AckThrough(frame.message)) Garbled(lane, now);
      return;
    case FrameType::kBye: {
      courier_.Send(lane, Frame{.type = FrameType::kByeAck, .flow = frame.flow});
      if (flow == nullptr) return;
      if (!flow->ledger->AckThrough(frame.message)) return Garbled(lane, now);
      if (flow->state == FlowState::kFailed) return;
      // An orderly end is no news; with requests outstanding it is the peer's abort.
      if (flow->ledger->posted_through() > flow->ledger->acked_through())
        return FailFlow(flow, "R2CC: peer " + peer_node_ + " closed the flow with messages on their way");
      flow->state = FlowState::kFailed;
      flow->error = "R2CC: peer " + peer_node_ + " closed the flow";
      return;
    }
    case FrameType::kFlowEnded: courier_.Answered({FrameType::kFlowEnd, frame.flow, 0}); return;
    case FrameType::kFenced:
      if (frame.link >= links_.size()) return Garbled(lane, now);
      courier_.Send(lane, Frame{.type = FrameType::kFencedAck, .link = frame.link, .incarnation = frame.incarnation});
      ReceiveFenced(frame, now);
      return;
    case FrameType::kProved:
      if (frame.link >= links_.size() || frame.incarnation != links_[frame.link].incarnation) return;
      if (links_[frame.link].state != InitiatorState::kProving) return;
      if (frame.ok)
        Step(frame.link, InitiatorEvent::kProved, EvidenceCause::kNone, now);
      else
        Step(frame.link, InitiatorEvent::kTrouble, EvidenceCause::kGarbled, now);
      return;
    case FrameType::kPong: watch_.Pong(lane, frame.number, now); return;
    case FrameType::kRailUp: {
      if (frame.link >= links_.size()) return Garbled(lane, now);
      Link& link = links_[frame.link];
      // An attempt made while the rail was down may sit in the kernel's own back-off: begin it anew.
      if (link.state == InitiatorState::kConnecting) Step(frame.link, InitiatorEvent::kTrouble, EvidenceCause::kNone, now);
      if (link.state == InitiatorState::kIdle) link.retry_at = now;
      TryLinks(now);
      return;
    }
    default: return Garbled(lane, now);
  }
}

// ---- lanes and links ----

void SendSession::OobUp(const std::string& peer_node, uint16_t remote_rails, Nanos now) {
  courier_.Up(kOobLane);
  oob_opening_ = false;
  oob_refused_ = false;
  oob_back_off_ = 0;
  watch_.Up(kOobLane, now);
  if (links_.empty() && remote_rails > 0) {
    peer_node_ = peer_node;
    const uint16_t count = std::min<uint16_t>(std::max(options_.local_rails, remote_rails), kLinksMax);
    links_.resize(count);
    courier_.set_links(count);
    shares_.resize(count);
    for (LinkId i = 0; i < count; ++i) {
      links_[i].local_rail = i % options_.local_rails;
      links_[i].remote_rail = i % remote_rails;
      links_[i].since = now;
      shares_[i].weight_permille = plan::kFullWeightPermille;
    }
    for (auto& [id, flow] : flows_) flow.home = HomeLink(flow.local_rail);
  }
  courier_.Resend(now);
  TryLinks(now);
}

void SendSession::OobDown(bool refused, Nanos now) {
  const bool was_up = courier_.up(kOobLane);
  oob_opening_ = false;
  oob_refused_ = refused;
  oob_back_off_ = was_up ? 0 : Doubled(oob_back_off_);
  oob_retry_at_ = now + oob_back_off_;
  if (was_up) LaneLost(kOobLane, now);
  CheckLost(now);
}

void SendSession::LinkConnected(LinkId link, Incarnation incarnation, Nanos now) {
  if (link >= links_.size() || links_[link].incarnation != incarnation || links_[link].state != InitiatorState::kConnecting) return;
  courier_.Up(link);
  watch_.Up(link, now);
  Step(link, InitiatorEvent::kConnected, EvidenceCause::kNone, now);
}

void SendSession::LinkTrouble(LinkId link, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  if (link >= links_.size() || links_[link].incarnation != incarnation) return;
  Step(link, InitiatorEvent::kTrouble, cause, now);
}

void SendSession::LocalRail(uint16_t rail, bool up, Nanos now) {
  if (rail >= local_rail_up_.size()) return;
  local_rail_up_[rail] = up;
  for (LinkId i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    if (link.local_rail != rail) continue;
    if (!up)
      Step(i, InitiatorEvent::kTrouble, EvidenceCause::kLinkDown, now);
    else if (link.state == InitiatorState::kIdle)
      link.retry_at = now;
  }
  TryLinks(now);
}

void SendSession::SetVerdict(LinkId link, bool failed, uint16_t weight_permille, Nanos now) {
  if (link >= links_.size()) return;
  if (links_[link].failed_verdict && !failed && links_[link].state == InitiatorState::kIdle) links_[link].retry_at = now;
  links_[link].failed_verdict = failed;
  if (shares_[link].weight_permille != weight_permille) {
    shares_[link].weight_permille = weight_permille;
    RefreshShares();
  }
  ApplyVerdicts(now);
}

bool SendSession::OtherWay(LinkId link) const {
  for (LinkId other = 0; other < links_.size(); ++other)
    if (other != link && links_[other].state == InitiatorState::kUp && !links_[other].failed_verdict) return true;
  return false;
}

void SendSession::ApplyVerdicts(Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i)
    if (links_[i].state != InitiatorState::kIdle && Shunned(i)) Step(i, InitiatorEvent::kTrouble, EvidenceCause::kPageNotice, now);
  TryLinks(now);
}

void SendSession::TryLinks(Nanos now) {
  if (failed_) return;
  for (LinkId i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    if (link.state == InitiatorState::kIdle && now >= link.retry_at && local_rail_up_[link.local_rail] && !Shunned(i))
      Step(i, InitiatorEvent::kTry, EvidenceCause::kNone, now);
  }
}

Carrier SendSession::NewCarrier() {
  for (;;) {
    const Carrier carrier = next_carrier_++;
    const auto used = [carrier](const auto& holder) { return holder.carrier == carrier; };
    if (IsCarrier(carrier) && std::none_of(links_.begin(), links_.end(), used) && std::none_of(fences_.begin(), fences_.end(), used))
      return carrier;
  }
}

void SendSession::CloseLink(LinkId id, Nanos now) {
  Action& action = Add(Action::Kind::kCloseLink);
  action.link = id;
  action.incarnation = links_[id].incarnation;
  LaneLost(id, now);
}

void SendSession::RefreshShares() {
  for (LinkId i = 0; i < links_.size(); ++i) {
    shares_[i].usable = links_[i].state == InitiatorState::kUp;
    shares_[i].carried_bytes = 0;
  }
}

void SendSession::Step(LinkId id, InitiatorEvent event, EvidenceCause cause, Nanos now) {
  Link& link = links_[id];
  const InitiatorState before = link.state;
  const InitiatorStep step = Next(before, event);
  const Nanos was_since = link.since;
  link.state = step.next;
  if (before != step.next) link.since = now;
  if (cause != EvidenceCause::kNone) last_cause_ = cause;
  switch (step.action) {
    case InitiatorAction::kNone: return;
    case InitiatorAction::kConnect: {
      ++link.incarnation;
      link.carrier = NewCarrier();
      Action& action = Add(Action::Kind::kOpenLink);
      action.link = id;
      action.incarnation = link.incarnation;
      return;
    }
    case InitiatorAction::kProve: {
      Action& action = Add(Action::Kind::kProveLink);
      action.link = id;
      action.incarnation = link.incarnation;
      return;
    }
    case InitiatorAction::kStart: {
      RefreshShares();
      no_link_since_ = 0;
      Action& action = Add(Action::Kind::kLinkUp);
      action.link = id;
      action.incarnation = link.incarnation;
      ApplyVerdicts(now);
      return;
    }
    case InitiatorAction::kBackOff:
      link.back_off = Doubled(link.back_off);
      link.retry_at = now + link.back_off;
      CloseLink(id, now);
      CheckLost(now);
      return;
    case InitiatorAction::kFence:
    case InitiatorAction::kReclaim:
      link.back_off = now - was_since >= kSteadyAfter ? kBackOffLeast : Doubled(link.back_off);
      link.retry_at = now + link.back_off;
      RefreshShares();
      if (std::none_of(shares_.begin(), shares_.end(), [](const LinkShare& share) { return share.usable; })) no_link_since_ = now;
      fences_.push_back({id, link.incarnation, link.carrier, cause, now});
      CloseLink(id, now);
      if (step.action == InitiatorAction::kFence) {
        Frame frame{.type = FrameType::kFence, .link = id, .incarnation = link.incarnation, .cause = static_cast<uint32_t>(cause)};
        courier_.Keep({FrameType::kFence, id, link.incarnation}, std::move(frame), id, true, now);
      }
      CheckLost(now);
      return;
  }
}

void SendSession::ReceiveFenced(const Frame& frame, Nanos now) {
  Link& link = links_[frame.link];
  if (frame.incarnation > link.incarnation) return;
  if (frame.incarnation == link.incarnation && link.state != InitiatorState::kIdle)
    Step(frame.link, InitiatorEvent::kPeerFenced, static_cast<EvidenceCause>(frame.cause), now);
  std::vector<Fence> answered;
  std::erase_if(fences_, [&](const Fence& fence) {
    if (fence.link != frame.link || fence.incarnation > frame.incarnation) return false;
    answered.push_back(fence);
    return true;
  });
  for (const Fence& fence : answered) Reclaim(fence, frame.arrivals, now);
}

void SendSession::Reclaim(const Fence& fence, const std::vector<FlowArrivals>& arrivals, Nanos now) {
  uint64_t replay_bytes = 0;
  for (auto& [id, flow] : flows_) {
    FlowArrivals none{id, flow.ledger->acked_through(), {}};
    const auto told = std::find_if(arrivals.begin(), arrivals.end(), [id = id](const FlowArrivals& a) { return a.flow == id; });
    replay_bytes += flow.ledger->Reclaim(fence.carrier, told == arrivals.end() ? none : *told);
  }
  courier_.Answered({FrameType::kFence, fence.link, fence.incarnation});
  Action& action = Add(Action::Kind::kLinkFenced);
  action.link = fence.link;
  action.incarnation = fence.incarnation;
  action.report = {fence.cause, replay_bytes, now - fence.since};
}

bool SendSession::Pull(LinkId id, Incarnation incarnation, Chunk* chunk) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != InitiatorState::kUp) return false;
  if (!MayPull(shares_, id)) return false;
  // A message that was begun is finished first, the oldest before the others; then the flows take turns, message by message.
  Flow* next = nullptr;
  SendLedger::Ready next_ready;
  for (auto& [flow_id, flow] : flows_) {
    if (flow.state == FlowState::kFailed || !Carries(shares_, options_.mode, flow.home, id)) continue;
    const SendLedger::Ready ready = flow.ledger->NextReady();
    if (!ready.any) continue;
    const bool sooner = next == nullptr || (ready.begun != next_ready.begun ? ready.begun
                                            : ready.begun                   ? ready.order < next_ready.order
                                                                            : flow.turn < next->turn);
    if (!sooner) continue;
    next = &flow;
    next_ready = ready;
  }
  if (next == nullptr || !next->ledger->Pull(links_[id].carrier, chunk)) return false;
  if (!next_ready.begun) next->turn = ++turns_;
  shares_[id].carried_bytes += chunk->bytes;
  return true;
}

// ---- time ----

void SendSession::WatchLanes(Nanos now) {
  const LaneWatch::Verdict verdict = watch_.Tick(outstanding(), now);
  for (const LaneWatch::Ping& ping : verdict.pings) {
    Frame frame{.type = FrameType::kPing};
    frame.number = ping.number;
    courier_.Send(ping.lane, frame);
  }
  for (const Lane lane : verdict.silent)
    if (lane != kOobLane) Step(static_cast<LinkId>(lane), InitiatorEvent::kTrouble, EvidenceCause::kSilence, now);
  if (!verdict.peer_silent) warned_silent_ = false;
  if (verdict.peer_silent && !warned_silent_ && !watch_.empty()) {
    warned_silent_ = true;
    Add(Action::Kind::kWarn).text = "R2CC: peer " + peer_node_ + " answers on no lane: its process may be stopped or very busy; waiting";
  }
}

void SendSession::CheckLost(Nanos now) {
  if (failed_ || no_link_since_ == 0) return;
  if (!courier_.any_up() && oob_refused_) {
    FailAll("R2CC: peer " + peer_node_ + " is gone: its address refuses connections and no rail reaches it");
  } else if (outstanding() && now - no_link_since_ >= options_.deadline) {
    FailAll("R2CC: no rail has reached peer " + peer_node_ + " for " + std::to_string(options_.deadline / kNanosPerMs) +
            " ms (R2CC_DEADLINE_MS); last cause: " + plan::CauseName(last_cause_));
  }
}

void SendSession::Tick(Nanos now) {
  if (failed_) return;
  if (!courier_.up(kOobLane) && !oob_opening_ && now >= oob_retry_at_) {
    oob_opening_ = true;
    Add(Action::Kind::kOpenOob);
  }
  for (LinkId i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    const bool opening = link.state == InitiatorState::kConnecting || link.state == InitiatorState::kProving;
    if (opening && now - link.since >= kConnectLimit) Step(i, InitiatorEvent::kTrouble, EvidenceCause::kSilence, now);
  }
  courier_.Tick(now);
  WatchLanes(now);
  ApplyVerdicts(now);
  CheckLost(now);
}

}  // namespace r2cc::net
