// What a receive session does as time passes: the peer that is silent or gone, the deadline.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/recv_session.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

}  // namespace

// ---- time ----

void RecvSession::PeerProbed(ProbeResult result, Nanos now) {
  probed_ = now;
  probe_ = result;
  if (result != ProbeResult::kRefused) return;
  if (!control_queue_.any_open())
    FailAll("R2CC: peer " + options_.peer + " is gone: its address refuses connections and no rail reaches it", plan::Failure::kPeerGone);
  else if (waiting() && now - last_received_ >= options_.silence)
    FailAll("R2CC: peer " + options_.peer + " is gone: it answers on no channel, and its address refuses connections",
            plan::Failure::kPeerGone);
}

bool RecvSession::OobSilent(Nanos now) const {
  return control_queue_.up(kOobChannel) && oob_silent_since_ != 0 && now - oob_silent_since_ >= options_.silence;
}

void RecvSession::PingOob(Nanos every, Nanos now) {
  if (now - oob_pinged_ < every) return;
  oob_pinged_ = now;
  if (oob_silent_since_ == 0) oob_silent_since_ = now;
  control_queue_.Send(kOobChannel, frames::Ping{});
}

// A sender with nothing to send is as quiet as one that is stopped, and both are waited for. With the out-of-band connection alive, an
// answer on it tells a peer that cannot reach us from one that is stopped; without it, the peer's kernel does. A process that runs at the
// peer's address is the peer, which cannot reach us, or another one.
bool RecvSession::Unreachable(Nanos now) {
  const bool link = links_.any_up();
  if (!flows_.outstanding() || (link && now - last_received_ < options_.silence)) return false;
  if (!control_queue_.up(kOobChannel))
    return probe_ == ProbeResult::kSilent || (probe_ == ProbeResult::kRuns && !control_queue_.any_open());
  PingOob(link ? tuning::kLookEvery : options_.silence / 2, now);
  return !link && !OobSilent(now);
}

void RecvSession::CheckLost(Nanos now) {
  if (failed_) return;
  unreachable_ = Unreachable(now) ? unreachable_ + std::clamp<Nanos>(now - ticked_, 0, tuning::kTickMost) : 0;
  ticked_ = now;
  if (unreachable_ >= options_.deadline) {
    if (options_.gave_up) return FailAll(options_.gave_up(unreachable_), plan::Failure::kDeadline);
    FailAll("R2CC: no rail has reached peer " + options_.peer + " for " + std::to_string(options_.deadline / kNanosPerMs) +
                " ms (R2CC_DEADLINE_MS)",
            plan::Failure::kDeadline);
    return;
  }
  // Also when all flows are closed: the channel that is left may be one on which nothing arrives, and words wait for their answers.
  const bool quiet = waiting() && now - last_received_ >= options_.silence;
  const bool ask = !control_queue_.any_open() || (quiet && (!control_queue_.up(kOobChannel) || OobSilent(now)));
  if (ask && now - probed_ >= tuning::kProbeEvery) {
    probed_ = now;
    Add(SessionAction::Kind::kProbePeer).last_received = last_received_;
  }
}

void RecvSession::Tick(Nanos now) {
  EndWriters(now);
  if (failed_) return;
  if (std::exchange(received_bulk_, false)) last_received_ = now;
  control_queue_.Tick(now, [this](const ControlQueue::Key& key, Frame* frame) {
    // What has arrived since belongs in the answer.
    const auto& [type, link, incarnation] = key;
    if (type == FrameType::kFenced)
      *frame = links_.Fenced(static_cast<LinkId>(link), incarnation, static_cast<EvidenceCause>(std::get<frames::Fenced>(*frame).cause));
  });
  links_.ApplyVerdicts(now);
  LinksChanged(now);
  CheckLost(now);
}

}  // namespace r2cc::net
