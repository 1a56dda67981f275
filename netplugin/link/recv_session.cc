#include "netplugin/link/recv_session.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/planted.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr Nanos kProbeEvery = 250 * kNanosPerMs;
// With links that are up, and nothing to hear on them.
constexpr Nanos kQuietPingEvery = kNanosPerSecond;
// A process that was stopped itself does not count the time as its peer's.
constexpr Nanos kTickMost = 100 * kNanosPerMs;
// At most one incarnation of a link is alive at this end, so the link's number names the carrier.
Carrier CarrierOf(LinkId link) { return link; }

}  // namespace

RecvSession::RecvSession(const Options& options, Nanos now)
    : options_(options),
      home_count_(std::min<uint16_t>(std::max(options.local_rails, options.remote_rails), kLinksMax / 2)),
      links_(size_t{2} * home_count_),
      local_failed_(options.local_rails, false),
      remote_failed_(options.remote_rails, false),
      rail_up_(options.local_rails, true),
      no_link_since_(now),
      ticked_(now),
      heard_(now) {
  R2CC_CHECK(options.local_rails > 0 && options.remote_rails > 0);
  courier_.set_links(links_.size());
  for (LinkId i = 0; i < home_count_; ++i) {
    links_[i].local_rail = i % options.local_rails;
    links_[i].remote_rail = i % options.remote_rails;
  }
}

// ---- the job ----

void RecvSession::AcceptFlow(FlowId id, LinkId home) {
  opening_.erase(id);
  RecvFlows::Flow* flow = flows_.Open(id, home);
  if (failed_) flows_.Fail(flow, "R2CC: peer " + options_.peer + " is gone");
  courier_.SendBest(Frame{.type = FrameType::kFlowOpened, .flow = id, .ok = true, .number = kEagerWindow}, home);
}

void RecvSession::RefuseFlow(FlowId id) {
  opening_.erase(id);
  courier_.SendBest(Frame{.type = FrameType::kFlowOpened, .flow = id, .ok = false}, 0);
}

MessageId RecvSession::Post(FlowId id, void* data, uint64_t capacity_bytes, Nanos) {
  RecvFlows::Flow* flow = flows_.Find(id);
  const MessageId message = flow->ledger.Post(data, capacity_bytes);
  if (flow->ledger.overflowed()) Overflowed(flow);
  // What had arrived before it is placed with the post.
  if (flow->ledger.placed_through() > message)
    flows_.Touch(flow);
  else
    flows_.TouchPosted(flow);
  return message;
}

void RecvSession::FailFlow(RecvFlows::Flow* flow, std::string error) {
  if (!flow->error.empty()) return;
  Add(Action::Kind::kWarn).text = error;
  flows_.Fail(flow, std::move(error));
}

void RecvSession::Overflowed(RecvFlows::Flow* flow) {
  FailFlow(flow, "R2CC: a message of peer " + options_.peer + " is larger than the buffer posted for it");
}

void RecvSession::CloseFlow(FlowId id, Nanos now) {
  const RecvFlows::Flow* flow = flows_.Find(id);
  if (flow == nullptr) return;
  const MessageId placed_through = flow->ledger.placed_through();
  const LinkId home = flow->home;
  flows_.Close(id);
  if (failed_) return;
  if (IsPlanted(Planted::kByeLost)) return;
  closed_[id] = placed_through;
  Frame frame{.type = FrameType::kBye, .flow = id};
  frame.message = placed_through;
  courier_.Keep({FrameType::kBye, id, 0}, std::move(frame), home, true, now);
}

void RecvSession::FailAll(const std::string& error) {
  failed_ = true;
  courier_.Forget();
  closed_.clear();
  if (!flows_.empty()) Add(Action::Kind::kWarn).text = error;
  flows_.FailAll(error);
}

void RecvSession::Suspicion(Nanos now) {
  flows_.TellAgain();
  courier_.Resend(now);
}

// ---- frames ----

// A peer that breaks the protocol on a lane loses the lane; the connection is made anew.
void RecvSession::Garbled(Lane lane, Nanos now) {
  Add(Action::Kind::kWarn).text = "R2CC: peer " + options_.peer + " broke the protocol";
  if (lane != kOobLane) return LinkTrouble(static_cast<LinkId>(lane), links_[lane].incarnation, EvidenceCause::kGarbled, now);
  Add(Action::Kind::kCloseOob);
  OobDown(now);
}

void RecvSession::Receive(Lane lane, const Frame& frame, Nanos now) {
  if (!courier_.open(lane)) return;
  heard_ = now;
  if (lane == kOobLane) oob_silent_since_ = 0;
  switch (frame.type) {
    case FrameType::kFlowOpen: {
      if (flows_.Find(frame.flow) != nullptr) {
        courier_.Send(lane, Frame{.type = FrameType::kFlowOpened, .flow = frame.flow, .ok = true, .number = kEagerWindow});
        return;
      }
      if (closed_.contains(frame.flow) || flows_.size() >= kFlowsMax || !opening_.insert(frame.flow).second) return;
      Action& action = Add(Action::Kind::kFlowOpened);
      for (LinkId link = 0; link < home_count_ && action.link == 0; ++link)
        if (links_[link].remote_rail == frame.cause) action.link = link;
      action.flow = frame.flow;
      action.number = frame.number;
      return;
    }
    case FrameType::kWant: {
      RecvFlows::Flow* flow = flows_.Find(frame.flow);
      if (flow == nullptr) return;
      // It may have overtaken what comes before, and the buffer may not be posted yet.
      flow->wanted_through = frame.message + 1;
      flows_.Touch(flow);
      return;
    }
    case FrameType::kFence: {
      if (frame.link >= links_.size()) return Garbled(lane, now);
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
    case FrameType::kPong: return;
    case FrameType::kFlowEnd: {
      courier_.Send(lane, Frame{.type = FrameType::kFlowEnded, .flow = frame.flow});
      if (RecvFlows::Flow* flow = flows_.Find(frame.flow); flow != nullptr)
        flow->ledger.posted_through() > flow->ledger.placed_through()
            ? FailFlow(flow, "R2CC: peer " + options_.peer + " closed the flow with receives outstanding")
            : flows_.Fail(flow, "R2CC: peer " + options_.peer + " closed the flow");
      return;
    }
    case FrameType::kByeAck:
      courier_.Answered({FrameType::kBye, frame.flow, 0});
      closed_.erase(frame.flow);
      return;
    default: return Garbled(lane, now);  // not a word for an acceptor
  }
}

// ---- lanes and links ----

void RecvSession::OobUp(Nanos now) {
  courier_.Up(kOobLane);
  oob_silent_since_ = 0;
  courier_.Resend(now);
}

void RecvSession::OobDown(Nanos now) {
  if (!courier_.up(kOobLane)) return;
  courier_.Down(kOobLane);
  Suspicion(now);
  CheckLost(now);
}

bool RecvSession::Greet(LinkId id, Incarnation incarnation, uint16_t local_rail, uint16_t remote_rail, Nanos now) {
  if (id >= links_.size() || failed_ || local_rail >= options_.local_rails || remote_rail >= options_.remote_rails) return false;
  Link& link = links_[id];
  if (id < home_count_ && (local_rail != link.local_rail || remote_rail != link.remote_rail)) return false;
  if (incarnation == link.incarnation)
    return link.state == AcceptorState::kUp && local_rail == link.local_rail && remote_rail == link.remote_rail;
  if (incarnation < link.incarnation) return false;
  Step(id, AcceptorEvent::kGreeted, incarnation, EvidenceCause::kPeerFenced, kOobLane, now);
  link.local_rail = local_rail;
  link.remote_rail = remote_rail;
  return true;
}

void RecvSession::LaneOpened(LinkId id, Incarnation incarnation, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != AcceptorState::kUp) return;
  courier_.Open(id);
  courier_.Resend(now);
}

void RecvSession::LinkTrouble(LinkId id, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation) return;
  Step(id, AcceptorEvent::kTrouble, incarnation, cause, kOobLane, now);
}

void RecvSession::LocalRail(uint16_t rail, bool up, Nanos now) {
  if (rail >= rail_up_.size()) return;
  const bool was_up = rail_up_[rail];
  rail_up_[rail] = up;
  if (up && !was_up) courier_.SendAll(Frame{.type = FrameType::kRailUp, .number = rail});
  if (up) return;
  for (LinkId id = 0; id < links_.size(); ++id)
    if (links_[id].local_rail == rail) Step(id, AcceptorEvent::kTrouble, links_[id].incarnation, EvidenceCause::kLinkDown, kOobLane, now);
}

void RecvSession::LocalVerdict(uint16_t rail, bool failed, Nanos now) {
  if (rail >= local_failed_.size()) return;
  const bool was_failed = local_failed_[rail];
  local_failed_[rail] = failed;
  if (was_failed && !failed) courier_.SendAll(Frame{.type = FrameType::kRailUp, .number = rail});
  ApplyVerdicts(now);
}

void RecvSession::RemoteVerdict(uint16_t rail, bool failed, Nanos now) {
  if (rail >= remote_failed_.size()) return;
  remote_failed_[rail] = failed;
  ApplyVerdicts(now);
}

bool RecvSession::OtherWay(LinkId id) const {
  for (LinkId other = 0; other < links_.size(); ++other)
    if (other != id && courier_.up(other) && !FailedVerdict(links_[other])) return true;
  return false;
}

void RecvSession::ApplyVerdicts(Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i)
    if (links_[i].state == AcceptorState::kUp && FailedVerdict(links_[i]) && OtherWay(i))
      Step(i, AcceptorEvent::kTrouble, links_[i].incarnation, EvidenceCause::kPageNotice, kOobLane, now);
}

Frame RecvSession::Fenced(LinkId link, Incarnation incarnation, EvidenceCause cause) const {
  Frame frame{.type = FrameType::kFenced, .link = link, .incarnation = incarnation, .cause = static_cast<uint32_t>(cause)};
  frame.arrivals = flows_.Arrivals();
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
  flows_.Drop(CarrierOf(id));
  Suspicion(now);
}

void RecvSession::Step(LinkId id, AcceptorEvent event, Incarnation incarnation, EvidenceCause cause, Lane lane, Nanos now) {
  Link& link = links_[id];
  if (options_.observer) options_.observer(id, link.state, event);
  const AcceptorStep step = Next(link.state, event);
  switch (step.action) {
    case AcceptorAction::kNone: break;
    case AcceptorAction::kEndAndBegin: End(id, now); [[fallthrough]];
    case AcceptorAction::kBegin:
      link.incarnation = incarnation;
      no_link_since_ = 0;
      break;
    case AcceptorAction::kEndAndAnswer:
      if (IsPlanted(Planted::kFenceUnfulfilled)) return courier_.Send(lane, Fenced(id, incarnation, cause));
      End(id, now);
      [[fallthrough]];
    case AcceptorAction::kAnswer: courier_.Send(lane, Fenced(id, incarnation, cause)); break;
    case AcceptorAction::kEndAndTell:
      End(id, now);
      if (!failed_) courier_.Keep({FrameType::kFenced, id, incarnation}, Fenced(id, incarnation, cause), id, true, now);
      break;
  }
  link.state = step.next;
  const auto up = [](const Link& l) { return l.state == AcceptorState::kUp; };
  flows_.set_whole(std::all_of(links_.begin(), links_.begin() + home_count_, up));
  if (no_link_since_ == 0 && std::none_of(links_.begin(), links_.end(), up)) {
    no_link_since_ = now;
    CheckLost(now);
  }
}

void RecvSession::Proved(LinkId id, Incarnation incarnation, bool ok) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != AcceptorState::kUp) return;
  Frame frame{.type = FrameType::kProved, .link = id, .incarnation = incarnation, .ok = ok};
  if (!courier_.open(id)) return;
  courier_.Send(id, frame);
  // The initiator proves a link once all its sockets have been answered. Until then words go elsewhere: on a rail that just came back the
  // one way may work before the other.
  if (ok) courier_.Up(id);
}

bool RecvSession::Begin(LinkId id, Incarnation incarnation, const Chunk& header, std::byte** destination) {
  *destination = nullptr;
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != AcceptorState::kUp) return false;
  heard_bulk_ = true;
  RecvFlows::Flow* flow = flows_.Find(header.flow);
  // A flow closed here: its bytes are read and forgotten.
  if (flow == nullptr) return true;
  const RecvLedger::Verdict verdict = flow->ledger.Begin(header, CarrierOf(id), destination);
  if (flow->ledger.overflowed()) Overflowed(flow);
  return verdict != RecvLedger::Verdict::kRefuse;
}

bool RecvSession::Finish(LinkId id, Incarnation incarnation, const Chunk& header) {
  R2CC_CHECK(links_[id].incarnation == incarnation && links_[id].state == AcceptorState::kUp);
  RecvFlows::Flow* flow = flows_.Find(header.flow);
  if (flow == nullptr) return false;
  const bool whole = flow->ledger.Finish(header.message, header.index, CarrierOf(id));
  // Its buffer was posted while it arrived.
  if (flow->ledger.overflowed()) Overflowed(flow);
  if (whole) flows_.Touch(flow);
  return whole;
}

// ---- time ----

void RecvSession::PeerProbed(Reach reach, Nanos now) {
  probed_ = now;
  probe_ = reach;
  if (reach != Reach::kRefused) return;
  if (!any_lane())
    FailAll("R2CC: peer " + options_.peer + " is gone: its address refuses connections and no rail reaches it");
  else if (outstanding() && now - heard_ >= options_.silence)
    FailAll("R2CC: peer " + options_.peer + " is gone: it answers on no lane, and its address refuses connections");
}

bool RecvSession::OobSilent(Nanos now) const {
  return courier_.up(kOobLane) && oob_silent_since_ != 0 && now - oob_silent_since_ >= options_.silence;
}

void RecvSession::PingOob(Nanos every, Nanos now) {
  if (now - oob_pinged_ < every) return;
  oob_pinged_ = now;
  if (oob_silent_since_ == 0) oob_silent_since_ = now;
  courier_.Send(kOobLane, Frame{.type = FrameType::kPing});
}

// A sender with nothing to send is as quiet as one that is stopped, and both are waited for. With the out-of-band connection alive, an
// answer on it tells a peer that cannot reach us from one that is stopped; without it, the peer's kernel does.
bool RecvSession::Unreachable(Nanos now) {
  const bool link = no_link_since_ == 0;
  if (!outstanding() || (link && now - heard_ < options_.silence)) return false;
  if (!courier_.up(kOobLane)) return probe_ == Reach::kSilent;
  PingOob(link ? kQuietPingEvery : options_.silence / 2, now);
  return !link && !OobSilent(now);
}

void RecvSession::CheckLost(Nanos now) {
  if (failed_) return;
  unreachable_ = Unreachable(now) ? unreachable_ + std::clamp<Nanos>(now - ticked_, 0, kTickMost) : 0;
  ticked_ = now;
  if (unreachable_ >= options_.deadline) {
    FailAll("R2CC: no rail has reached peer " + options_.peer + " for " + std::to_string(options_.deadline / kNanosPerMs) +
            " ms (R2CC_DEADLINE_MS)");
    return;
  }
  const bool quiet = outstanding() && now - heard_ >= options_.silence;
  const bool ask = !any_lane() || (quiet && (!courier_.up(kOobLane) || OobSilent(now)));
  if (ask && now - probed_ >= kProbeEvery) {
    probed_ = now;
    Add(Action::Kind::kProbePeer);
  }
}

void RecvSession::Tick(Nanos now) {
  if (failed_) return;
  if (std::exchange(heard_bulk_, false)) heard_ = now;
  courier_.Tick(now, [this](const Courier::Key& key, Frame* frame) {
    // What has arrived since belongs in the answer.
    const auto& [type, link, incarnation] = key;
    if (type == FrameType::kFenced) *frame = Fenced(static_cast<LinkId>(link), incarnation, static_cast<EvidenceCause>(frame->cause));
  });
  ApplyVerdicts(now);
  CheckLost(now);
}

}  // namespace r2cc::net
