#include "netplugin/link/recv_session.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr Nanos kProbeEvery = 250 * kNanosPerMs;

// At most one incarnation of a link is alive at this end, so the link's number names the carrier.
Carrier CarrierOf(LinkId link) { return link; }

}  // namespace

RecvSession::RecvSession(const Options& options, Nanos now) : options_(options), links_(options.links), no_link_since_(now) {
  R2CC_CHECK(options.links > 0 && options.links <= kLinksMax);
  courier_.set_links(options.links);
}

// ---- the job ----

void RecvSession::AcceptFlow(FlowId id, Nanos) {
  Flow& flow = flows_[id];
  flow.ledger = std::make_unique<RecvLedger>(id);
  if (failed_) flow.error = "R2CC: peer " + options_.peer + " is gone";
  courier_.SendBest(Frame{.type = FrameType::kFlowOpened, .flow = id, .ok = true}, flow.home);
}

void RecvSession::RefuseFlow(FlowId id) { courier_.SendBest(Frame{.type = FrameType::kFlowOpened, .flow = id, .ok = false}, 0); }

MessageId RecvSession::Post(FlowId id, void* data, uint64_t capacity_bytes, Nanos) {
  return flows_.at(id).ledger->Post(data, capacity_bytes);
}
MessageId RecvSession::PlacedThrough(FlowId id) const { return flows_.at(id).ledger->placed_through(); }
uint64_t RecvSession::SizeOf(FlowId id, MessageId message) const { return flows_.at(id).ledger->SizeOf(message); }
const std::string& RecvSession::error(FlowId id) const { return flows_.at(id).error; }

void RecvSession::CloseFlow(FlowId id, Nanos now) {
  const auto it = flows_.find(id);
  if (it == flows_.end()) return;
  const MessageId placed_through = it->second.ledger->placed_through();
  const LinkId home = it->second.home;
  flows_.erase(it);
  if (failed_) return;
  closed_[id] = placed_through;
  Frame frame{.type = FrameType::kBye, .flow = id};
  frame.message = placed_through;
  courier_.Keep({FrameType::kBye, id, 0}, std::move(frame), home, true, now);
}

bool RecvSession::outstanding() const {
  return std::any_of(flows_.begin(), flows_.end(), [](const auto& entry) {
    return entry.second.error.empty() && entry.second.ledger->posted_through() > entry.second.ledger->placed_through();
  });
}

void RecvSession::FailAll(const std::string& error) {
  failed_ = true;
  courier_.Forget();
  closed_.clear();
  if (!flows_.empty()) Add(Action::Kind::kWarn).text = error;
  for (auto& [id, flow] : flows_)
    if (flow.error.empty()) flow.error = error;
}

// ---- frames ----

// Whatever was told on a lane that is gone may be lost: tell it again on another.
void RecvSession::Suspicion(Nanos now) {
  for (auto& [id, flow] : flows_) {
    flow.granted_through = flow.ledger->placed_through();
    flow.acks_again = true;
  }
  courier_.Resend(now);
}

void RecvSession::Flush() {
  for (auto& [id, flow] : flows_) {
    const MessageId placed = flow.ledger->placed_through();
    if (placed > flow.acked_through || flow.acks_again) {
      Frame frame{.type = FrameType::kAck, .flow = id};
      frame.message = placed;
      if (courier_.SendBest(frame, flow.home)) {
        flow.acked_through = placed;
        flow.acks_again = false;
      }
    }
    if (flow.ledger->posted_through() > flow.granted_through) {
      Frame frame{.type = FrameType::kGrant, .flow = id};
      frame.message = std::max(flow.granted_through, placed);
      frame.numbers = flow.ledger->Capacities(frame.message);
      if (frame.numbers.empty() || courier_.SendBest(frame, flow.home)) flow.granted_through = flow.ledger->posted_through();
    }
  }
}

void RecvSession::Receive(Lane lane, const Frame& frame, Nanos now) {
  if (lane != kOobLane && (lane >= static_cast<Lane>(links_.size()) || !courier_.up(lane))) return;
  switch (frame.type) {
    case FrameType::kFlowOpen: {
      if (const auto it = flows_.find(frame.flow); it != flows_.end()) {
        courier_.Send(lane, Frame{.type = FrameType::kFlowOpened, .flow = frame.flow, .ok = true});
        return;
      }
      if (closed_.contains(frame.flow) || flows_.size() >= kFlowsMax) return;
      Action& action = Add(Action::Kind::kFlowOpened);
      action.flow = frame.flow;
      action.number = frame.number;
      return;
    }
    case FrameType::kFence: {
      if (frame.link >= links_.size()) return;
      Link& link = links_[frame.link];
      if (frame.incarnation < link.incarnation) {
        // Ended long ago: a newer incarnation was greeted since.
        courier_.Send(lane, Fenced(frame.link, frame.incarnation, static_cast<EvidenceCause>(frame.cause)));
        return;
      }
      if (frame.incarnation > link.incarnation) {
        // No socket of it has arrived, and from now on none may.
        if (link.state == AcceptorState::kUp) End(frame.link, now);
        link.state = AcceptorState::kDown;
        link.incarnation = frame.incarnation;
      }
      Step(frame.link, AcceptorEvent::kFence, frame.incarnation, static_cast<EvidenceCause>(frame.cause), lane, now);
      return;
    }
    case FrameType::kFencedAck: courier_.AnsweredThrough(FrameType::kFenced, frame.link, frame.incarnation); return;
    case FrameType::kPing: {
      Frame pong{.type = FrameType::kPong};
      pong.number = frame.number;
      courier_.Send(lane, pong);
      return;
    }
    case FrameType::kFlowEnd: {
      courier_.Send(lane, Frame{.type = FrameType::kFlowEnded, .flow = frame.flow});
      const auto it = flows_.find(frame.flow);
      if (it != flows_.end() && it->second.error.empty()) it->second.error = "R2CC: peer " + options_.peer + " closed the flow";
      return;
    }
    case FrameType::kByeAck:
      courier_.Answered({FrameType::kBye, frame.flow, 0});
      closed_.erase(frame.flow);
      return;
    default: {
      // Not a word for an acceptor.
      Add(Action::Kind::kWarn).text = "R2CC: peer " + options_.peer + " broke the protocol";
      if (lane != kOobLane) LinkTrouble(static_cast<LinkId>(lane), links_[lane].incarnation, EvidenceCause::kGarbled, now);
      return;
    }
  }
}

// ---- lanes and links ----

void RecvSession::OobUp(Nanos now) {
  courier_.Up(kOobLane);
  courier_.Resend(now);
}

void RecvSession::OobDown(Nanos now) {
  if (!courier_.up(kOobLane)) return;
  courier_.Down(kOobLane);
  Suspicion(now);
  CheckLost(now);
}

bool RecvSession::Greet(LinkId id, Incarnation incarnation, Nanos now) {
  if (id >= links_.size() || failed_) return false;
  Link& link = links_[id];
  if (incarnation == link.incarnation) return link.state == AcceptorState::kUp;
  if (incarnation < link.incarnation) return false;
  Step(id, AcceptorEvent::kGreeted, incarnation, EvidenceCause::kPeerFenced, kOobLane, now);
  return true;
}

void RecvSession::LaneUp(LinkId id, Incarnation incarnation, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != AcceptorState::kUp) return;
  courier_.Up(id);
  courier_.Resend(now);
}

void RecvSession::LinkTrouble(LinkId id, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation) return;
  Step(id, AcceptorEvent::kTrouble, incarnation, cause, kOobLane, now);
}

void RecvSession::LocalLink(LinkId id, bool up, Nanos now) {
  if (id >= links_.size()) return;
  Link& link = links_[id];
  const bool was_up = std::exchange(link.rail_up, up);
  if (!up)
    Step(id, AcceptorEvent::kTrouble, link.incarnation, EvidenceCause::kLinkDown, kOobLane, now);
  else if (!was_up)
    courier_.SendAll(Frame{.type = FrameType::kRailUp, .link = id});
}

void RecvSession::SetVerdict(LinkId id, bool failed, Nanos now) {
  if (id >= links_.size()) return;
  const bool was_failed = std::exchange(links_[id].failed_verdict, failed);
  if (was_failed && !failed) courier_.SendAll(Frame{.type = FrameType::kRailUp, .link = id});
  ApplyVerdicts(now);
}

bool RecvSession::OtherWay(LinkId id) const {
  for (LinkId other = 0; other < links_.size(); ++other)
    if (other != id && courier_.up(other) && !links_[other].failed_verdict) return true;
  return false;
}

void RecvSession::ApplyVerdicts(Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i)
    if (links_[i].state == AcceptorState::kUp && links_[i].failed_verdict && OtherWay(i))
      Step(i, AcceptorEvent::kTrouble, links_[i].incarnation, EvidenceCause::kPageNotice, kOobLane, now);
}

Frame RecvSession::Fenced(LinkId link, Incarnation incarnation, EvidenceCause cause) const {
  Frame frame{.type = FrameType::kFenced, .link = link, .incarnation = incarnation, .cause = static_cast<uint32_t>(cause)};
  for (const auto& [id, flow] : flows_) frame.arrivals.push_back(flow.ledger->Arrivals());
  for (const auto& [id, placed_through] : closed_) frame.arrivals.push_back({id, placed_through, {}});
  return frame;
}

void RecvSession::End(LinkId id, Nanos now) {
  Action& action = Add(Action::Kind::kCloseLink);
  action.link = id;
  action.incarnation = links_[id].incarnation;
  courier_.Down(id);
  // From here on nothing of this incarnation reaches a buffer: Begin() and Finish() refuse it, and the transport reads no more.
  links_[id].state = AcceptorState::kDown;
  for (auto& [flow_id, flow] : flows_) flow.ledger->Drop(CarrierOf(id));
  Suspicion(now);
}

void RecvSession::Step(LinkId id, AcceptorEvent event, Incarnation incarnation, EvidenceCause cause, Lane lane, Nanos now) {
  Link& link = links_[id];
  const AcceptorStep step = Next(link.state, event);
  switch (step.action) {
    case AcceptorAction::kNone: break;
    case AcceptorAction::kEndAndBegin: End(id, now); [[fallthrough]];
    case AcceptorAction::kBegin:
      link.incarnation = incarnation;
      no_link_since_ = 0;
      break;
    case AcceptorAction::kEndAndAnswer: End(id, now); [[fallthrough]];
    case AcceptorAction::kAnswer: courier_.Send(lane, Fenced(id, incarnation, cause)); break;
    case AcceptorAction::kEndAndTell:
      End(id, now);
      courier_.Keep({FrameType::kFenced, id, incarnation}, Fenced(id, incarnation, cause), id, true, now);
      break;
  }
  link.state = step.next;
  if (no_link_since_ == 0 && std::none_of(links_.begin(), links_.end(), [](const Link& l) { return l.state == AcceptorState::kUp; })) {
    no_link_since_ = now;
    CheckLost(now);
  }
}

void RecvSession::Proved(LinkId id, Incarnation incarnation, bool ok) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != AcceptorState::kUp) return;
  Frame frame{.type = FrameType::kProved, .link = id, .incarnation = incarnation, .ok = ok};
  if (courier_.up(id)) courier_.Send(id, frame);
}

bool RecvSession::Begin(LinkId id, Incarnation incarnation, const Chunk& header, std::byte** destination) {
  *destination = nullptr;
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != AcceptorState::kUp) return false;
  const auto it = flows_.find(header.flow);
  // A flow closed here: its bytes are read and forgotten.
  if (it == flows_.end()) return true;
  return it->second.ledger->Begin(header, CarrierOf(id), destination) != RecvLedger::Verdict::kRefuse;
}

bool RecvSession::Finish(LinkId id, Incarnation incarnation, const Chunk& header) {
  R2CC_CHECK(links_[id].incarnation == incarnation && links_[id].state == AcceptorState::kUp);
  const auto it = flows_.find(header.flow);
  return it != flows_.end() && it->second.ledger->Finish(header.message, header.index, CarrierOf(id));
}

// ---- time ----

void RecvSession::PeerProbed(bool refused, Nanos now) {
  probed_ = now;
  if (refused && !any_lane()) FailAll("R2CC: peer " + options_.peer + " is gone: its address refuses connections and no rail reaches it");
}

void RecvSession::CheckLost(Nanos now) {
  if (failed_ || no_link_since_ == 0) return;
  if (outstanding() && now - no_link_since_ >= options_.deadline) {
    FailAll("R2CC: no rail has reached peer " + options_.peer + " for " + std::to_string(options_.deadline / kNanosPerMs) +
            " ms (R2CC_DEADLINE_MS)");
    return;
  }
  if (!any_lane() && now - probed_ >= kProbeEvery) {
    probed_ = now;
    Add(Action::Kind::kProbePeer);
  }
}

void RecvSession::Tick(Nanos now) {
  if (failed_) return;
  courier_.Tick(now, [this](const Courier::Key& key, Frame* frame) {
    // What has arrived since belongs in the answer.
    const auto& [type, link, incarnation] = key;
    if (type == FrameType::kFenced) *frame = Fenced(static_cast<LinkId>(link), incarnation, static_cast<EvidenceCause>(frame->cause));
  });
  ApplyVerdicts(now);
  CheckLost(now);
}

}  // namespace r2cc::net
