// What a send session does as time passes: silence, stalls, the peer that is gone, the deadline.
#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

}  // namespace

// ---- time ----

void SendSession::WatchChannels(Nanos now) {
  const FailureDetector::Verdict verdict = detector_.Tick(outstanding(), now);
  for (const FailureDetector::Ping& ping : verdict.pings) {
    control_queue_.Send(ping.channel, frames::Ping{ping.number});
  }
  for (const ChannelId channel : verdict.silent)
    channel == kOobChannel ? CloseOob(now) : links_.Trouble(static_cast<LinkId>(channel), EvidenceCause::kSilence, now);
  for (const ChannelId channel : verdict.stalled) {
    links_.Stalled(static_cast<LinkId>(channel), now);
    Add(SessionAction::Kind::kLinkStalled).link = static_cast<LinkId>(channel);
  }
  if (verdict.peer_silent && !detector_.empty())
    PeerIsSilent(now);
  else
    warned_silent_ = false;
  // Something else than its process may hold the connection open.
  if (oob_.Ungreeted(options_.silence, now) && outstanding() && detector_.AllSilent(now)) ProbePeer(now);
}

void SendSession::ProbePeer(Nanos now) {
  if (now - probed_ < tuning::kProbeEvery) return;
  probed_ = now;
  Add(SessionAction::Kind::kProbePeer).last_received = detector_.last_received();
}

// Nobody answers: the peer's kernel at the out-of-band address tells a process that is stopped from one that is gone.
void SendSession::PeerIsSilent(Nanos now) {
  if (!control_queue_.up(kOobChannel)) {
    // Its address refuses: the process is gone, and no device says so of a link that waits for its peer before it sends. Or the host has
    // vanished, as far as anybody can see: its links are as dead as the channel whose keep-alive failed; the deadline runs.
    if (!oob_.refused() && !oob_.Silent(options_.silence, now)) return;
    for (LinkId link = 0; link < links_.count(); ++link)
      if (links_.state(link) == InitiatorState::kUp) links_.Trouble(link, EvidenceCause::kSilence, now);
    return;
  }
  ProbePeer(now);
  if (std::exchange(warned_silent_, true)) return;
  Add(SessionAction::Kind::kWarn).text =
      "R2CC: peer " + peer_node_ + " answers on no channel: its process may be stopped or very busy; waiting";
}

// What ends single flows although the peer answers.
void SendSession::CheckFlows(Nanos now) {
  if (detector_.empty() || detector_.AllSilent(now)) return;
  const Nanos answering = std::clamp<Nanos>(now - ticked_, 0, tuning::kTickMost);
  // A peer that answers everything but a fence cannot close the link. What it may still write must not be replayed into the same buffers.
  links_.AgeFences(answering, options_.deadline, [&](LinkId link, PathEpoch epoch) {
    for (auto& [id, flow] : flows_.all())
      if (flow.ledger.Holds(epoch))
        FailFlow(&flow,
                 "R2CC: peer " + peer_node_ + " could not close link " + std::to_string(link) + " for " +
                     std::to_string(options_.deadline / kNanosPerMs) +
                     " ms (R2CC_DEADLINE_MS): it may still write, so its unacknowledged data must not be replayed",
                 plan::Failure::kDeadline);
  });
  // A drained link empties by itself, but not while its peer is stopped: only time counts in which the peer was heard.
  if (now - detector_.last_received() <= options_.silence / 2) links_.AgeDrained(answering, options_.silence, now);
  links_.AgeStranded(answering, options_.deadline, [&](SendFlows::Flow* flow) {
    FailFlow(flow,
             "R2CC: no link that works has reached memory of peer " + peer_node_ + " for " +
                 std::to_string(options_.deadline / kNanosPerMs) + " ms (R2CC_DEADLINE_MS): it is registered on rails that are down",
             plan::Failure::kDeadline);
  });
}

void SendSession::CheckLost(Nanos now) {
  if (failed_) return;
  // With its kernel answering at the out-of-band address and nobody else, the peer is stopped: that takes as long as it takes.
  const bool stopped = detector_.Silent(kOobChannel, now) || oob_.ungreeted();
  if (std::exchange(peer_stopped_, stopped) && !stopped && control_queue_.up(kOobChannel)) links_.PeerIsBack(now);
  if (links_.none_since() == 0 || !outstanding()) {
    unreachable_ = 0;
  } else if (!stopped) {
    unreachable_ += std::clamp<Nanos>(now - ticked_, 0, tuning::kTickMost);
  }
  ticked_ = now;
  // No flow is left, and the peer cannot be told so: a host that has vanished is not asked for ever.
  if (!flows_.empty() || control_queue_.any_open())
    forsaken_since_ = 0;
  else if (forsaken_since_ == 0)
    forsaken_since_ = now;
  else if (now - forsaken_since_ >= options_.deadline)
    return FailAll("", plan::Failure::kUnknown);
  if (links_.none_since() == 0) return;
  if (IsActive(Mutant::kFalseError) && links_.last_cause() == EvidenceCause::kLinkDown)
    return FailAll("R2CC: a link is down", plan::Failure::kUnknown);
  if (!control_queue_.any_open() && oob_.refused()) {
    FailAll("R2CC: peer " + peer_node_ + " is gone: its address refuses connections and no rail reaches it", plan::Failure::kPeerGone);
  } else if (unreachable_ >= options_.deadline) {
    if (options_.gave_up && !flows_.empty()) return FailAll(options_.gave_up(links_.Fates(), unreachable_), plan::Failure::kDeadline);
    FailAll("R2CC: no rail has reached peer " + peer_node_ + " for " + std::to_string(options_.deadline / kNanosPerMs) +
                " ms (R2CC_DEADLINE_MS); last cause: " + plan::CauseText(links_.last_cause(), 0),
            plan::Failure::kDeadline);
  }
}

void SendSession::Tick(Nanos now) {
  if (failed_) return;
  if (oob_.Try(now)) Add(SessionAction::Kind::kOpenOob);
  flows_.Date(now);
  faults_.Tick(now);
  links_.Tick(now);
  control_queue_.Tick(now);
  WatchChannels(now);
  EndClosing(now);
  CheckFlows(now);
  CheckLost(now);
}

}  // namespace r2cc::net
