#include "netplugin/link/recv_links.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

}  // namespace

RecvLinks::RecvLinks(uint16_t local_rails, uint16_t remote_rails, std::string peer, const Session& session, AcceptorObserver observer,
                     Nanos now)
    : session_(session),
      observer_(std::move(observer)),
      peer_(std::move(peer)),
      home_count_(std::min<uint16_t>(std::max(local_rails, remote_rails), kLinksMax / 2)),
      links_(size_t{2} * home_count_),
      rail_up_(local_rails, true),
      local_failed_(local_rails, false),
      remote_failed_(remote_rails, false),
      none_since_(now) {
  R2CC_CHECK(local_rails > 0 && remote_rails > 0);
  session_.control_queue->set_links(links_.size());
  for (LinkId i = 0; i < home_count_; ++i)
    links_[i].rails = {static_cast<uint16_t>(i % local_rails), static_cast<uint16_t>(i % remote_rails)};
}

// ---- events ----

RecvLinks::Admission RecvLinks::Greet(LinkId id, Incarnation incarnation, uint16_t local_rail, uint16_t remote_rail, Nanos now) {
  if (id >= links_.size() || stopped_ || local_rail >= local_failed_.size() || remote_rail >= remote_failed_.size())
    return Admission::kRefused;
  Link& link = links_[id];
  const bool same_rails = RailPair{local_rail, remote_rail} == link.rails;
  if (incarnation <= link.barred || incarnation < link.incarnation || (id < home_count_ && !same_rails)) return Admission::kRefused;
  if (incarnation == link.incarnation) return link.state == AcceptorState::kUp && same_rails ? Admission::kAccepted : Admission::kRefused;
  Step(id, AcceptorEvent::kGreeted, incarnation, EvidenceCause::kPeerFenced, kOobChannel, now);
  if (link.state != AcceptorState::kUp) return Admission::kLater;
  link.rails = {local_rail, remote_rail};
  return Admission::kAccepted;
}

void RecvLinks::Closed(LinkId id, Incarnation incarnation, bool ok, Nanos now) {
  if (links_[id].incarnation != incarnation) return;
  const bool answered_early = IsActive(Mutant::kCloseNotAwaited) || IsActive(Mutant::kCloseFailureUnheeded);
  if (answered_early && links_[id].state != AcceptorState::kEnding) return;
  const bool closed = ok || IsActive(Mutant::kCloseFailureUnheeded);
  Step(id, closed ? AcceptorEvent::kClosed : AcceptorEvent::kNotClosed, incarnation, EvidenceCause::kNone, kOobChannel, now);
}

void RecvLinks::ChannelOpened(LinkId id, Incarnation incarnation, Nanos now) {
  if (!is(id, incarnation)) return;
  session_.control_queue->Open(id);
  session_.control_queue->Resend(now);
}

void RecvLinks::Trouble(LinkId id, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  if (id < links_.size() && links_[id].incarnation == incarnation) Step(id, AcceptorEvent::kTrouble, incarnation, cause, kOobChannel, now);
}

bool RecvLinks::Fence(const frames::Fence& fence, ChannelId channel, Nanos now) {
  if (fence.link >= links_.size()) return false;
  Link& link = links_[fence.link];
  const auto cause = static_cast<EvidenceCause>(fence.cause);
  if (fence.incarnation < link.incarnation) {
    // Closed long ago: a newer incarnation has begun since.
    session_.control_queue->Send(channel, Fenced(fence.link, fence.incarnation, cause));
    return true;
  }
  // Also where nothing of it has arrived: from now on nothing may.
  link.barred = std::max(link.barred, fence.incarnation);
  Step(fence.link, AcceptorEvent::kFence, fence.incarnation, cause, channel, now);
  return true;
}

void RecvLinks::Proved(LinkId id, Incarnation incarnation, bool ok) {
  if (!is(id, incarnation) || !session_.control_queue->open(id)) return;
  // What its first chunk needs is there before it.
  session_.control_queue->Repeat(FrameType::kRegion, id);
  session_.control_queue->Send(id, frames::Proved{.link = id, .incarnation = incarnation, .ok = ok});
  // The initiator proves a link once all its sockets have been answered. Until then frames go elsewhere: on a rail that just came back the
  // one way may work before the other.
  if (ok) session_.control_queue->Up(id);
}

void RecvLinks::LocalRail(uint16_t rail, bool up, Nanos now) {
  if (rail >= rail_up_.size()) return;
  const bool was_up = rail_up_[rail];
  rail_up_[rail] = up;
  if (up && !was_up) session_.control_queue->SendAll(frames::RailUp{rail});
  if (up) return;
  for (LinkId id = 0; id < links_.size(); ++id)
    if (links_[id].rails.local == rail)
      Step(id, AcceptorEvent::kTrouble, links_[id].incarnation, EvidenceCause::kLinkDown, kOobChannel, now);
}

void RecvLinks::LocalVerdict(uint16_t rail, bool failed, Nanos now) {
  if (rail >= local_failed_.size()) return;
  if (local_failed_[rail] == failed) return;
  local_failed_[rail] = failed;
  if (!failed) session_.control_queue->SendAll(frames::RailUp{rail});
  ApplyVerdicts(now);
}

void RecvLinks::RemoteVerdict(uint16_t rail, bool failed, Nanos now) {
  if (rail >= remote_failed_.size() || remote_failed_[rail] == failed) return;
  remote_failed_[rail] = failed;
  ApplyVerdicts(now);
}

bool RecvLinks::OtherWay(LinkId id) const {
  for (LinkId other = 0; other < links_.size(); ++other)
    if (other != id && session_.control_queue->up(other) && !FailedVerdict(links_[other].rails)) return true;
  return false;
}

void RecvLinks::ApplyVerdicts(Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i)
    if (up(i) && FailedVerdict(links_[i].rails) && OtherWay(i))
      Step(i, AcceptorEvent::kTrouble, links_[i].incarnation, EvidenceCause::kPageNotice, kOobChannel, now);
}

void RecvLinks::RailsStalled(RailPair rails, Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i)
    if (up(i) && links_[i].rails == rails && OtherWay(i))
      Step(i, AcceptorEvent::kTrouble, links_[i].incarnation, EvidenceCause::kPeerFenced, kOobChannel, now);
}

// ---- the table's actions ----

frames::Fenced RecvLinks::Fenced(LinkId link, Incarnation incarnation, EvidenceCause cause) const {
  return {.link = link, .incarnation = incarnation, .cause = static_cast<uint32_t>(cause), .arrivals = session_.flows->Arrivals()};
}

void RecvLinks::End(LinkId id, Nanos now) {
  SessionAction& action = session_.actions->emplace_back(SessionAction{.kind = SessionAction::Kind::kCloseLink});
  action.link = id;
  action.incarnation = links_[id].incarnation;
  session_.control_queue->Down(id);
  // What was told on its channel may be lost.
  session_.flows->RepeatReports();
  session_.control_queue->Resend(now);
}

void RecvLinks::Owe(LinkId id, Incarnation incarnation, EvidenceCause cause) {
  Pending& pending = links_[id].pending;
  if (incarnation < pending.incarnation) return;
  pending.incarnation = incarnation;
  // Our own reason tells the initiator more than its own.
  if (!pending.report) pending.cause = cause;
}

void RecvLinks::SendPending(LinkId id, Nanos now) {
  const Pending pending = std::exchange(links_[id].pending, {});
  if (pending.incarnation == 0 || stopped_) return;
  frames::Fenced fenced = Fenced(id, pending.incarnation, pending.cause);
  if (pending.report)
    return session_.control_queue->SendUntilAnswered({FrameType::kFenced, id, pending.incarnation}, std::move(fenced), id, true, now);
  for (const ChannelId channel : pending.channels) session_.control_queue->Send(channel, fenced);
}

void RecvLinks::Step(LinkId id, AcceptorEvent event, Incarnation incarnation, EvidenceCause cause, ChannelId channel, Nanos now) {
  Link& link = links_[id];
  if (observer_) observer_(id, link.state, event);
  const AcceptorStep step = Next(link.state, event);
  if (IsActive(Mutant::kFenceUnfulfilled) && step.action == AcceptorAction::kCloseAndOwe)
    return session_.control_queue->Send(channel, Fenced(id, incarnation, cause));
  // From here on an ending link delivers no more; its claims stay until it is closed.
  link.state = step.next;
  switch (step.action) {
    case AcceptorAction::kNone: break;
    case AcceptorAction::kBegin: link.incarnation = incarnation; break;
    case AcceptorAction::kAnswer: session_.control_queue->Send(channel, Fenced(id, incarnation, cause)); break;
    case AcceptorAction::kClose: End(id, now); break;
    case AcceptorAction::kCloseAndOwe:
      End(id, now);
      if (IsActive(Mutant::kFencedEarly)) {
        session_.control_queue->Send(channel, Fenced(id, incarnation, cause));
        break;
      }
      [[fallthrough]];
    case AcceptorAction::kOwe:
      Owe(id, incarnation, cause);
      link.pending.channels.insert(channel);
      break;
    case AcceptorAction::kCloseAndReport:
      End(id, now);
      Owe(id, incarnation, cause);
      link.pending.report = true;
      break;
    case AcceptorAction::kFinish:
      session_.flows->Drop(PathEpochOf(id));
      SendPending(id, now);
      break;
    case AcceptorAction::kWithhold:
      session_.actions->emplace_back(SessionAction{.kind = SessionAction::Kind::kWarn}).text =
          "R2CC: a link to peer " + peer_ +
          " cannot be closed: its unacknowledged data is not replayed; affected flows fail after R2CC_DEADLINE_MS";
      break;
  }
  const auto is_up = [](const Link& l) { return l.state == AcceptorState::kUp; };
  session_.flows->set_whole(std::all_of(links_.begin(), links_.begin() + home_count_, is_up));
  const bool none = std::none_of(links_.begin(), links_.end(), is_up);
  if (!none || none_since_ == 0) none_since_ = none ? now : 0;
}

}  // namespace r2cc::net
