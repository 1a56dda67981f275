#include "tests/sim/stall_watch.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace r2cc::sim {
namespace {

// Beyond the silence, of a link that stalls: samples, and the time that witnesses take.
constexpr Nanos kFencedWithin = 100 * kNanosPerMs;
// On slow rails what shows that the peer is awake takes longer.
constexpr int64_t kQuickBytesPerS = 50'000'000;

}  // namespace

// Nothing holds up the out-of-band connection or a process now, or has for a while.
bool StallWatch::IsPeerAwake() const {
  static constexpr FaultKind kHolding[] = {FaultKind::kClogShort, FaultKind::kClogLong,  FaultKind::kOobLost,  FaultKind::kOobReset,
                                           FaultKind::kPartition, FaultKind::kStopShort, FaultKind::kStopLong, FaultKind::kPause};
  const Nanos now = network_->timeline()->now();
  return std::none_of(scenario_->faults.begin(), scenario_->faults.end(), [now](const Fault& fault) {
    const bool holds = std::find(std::begin(kHolding), std::end(kHolding), fault.kind) != std::end(kHolding);
    // The kernel sends lost bytes again at intervals that double.
    return holds && fault.at <= now && now < fault.at + fault.duration + std::max(fault.duration, kNanosPerSecond);
  });
}

void StallWatch::Judge() {
  const Nanos now = network_->timeline()->now();
  std::map<verbs::QueuePairId, Nanos> still;
  for (const VerbsRails::Stalled& pair : rails_->StalledPairs()) {
    const Process &process = At(pair.from.host), &peer = At(pair.to.host);
    const auto found = process.send_peers().find(pair.to.host);
    if (found == process.send_peers().end()) continue;
    const net::SendSession& session = found->second->session();
    bool is_up = false;
    for (net::LinkId link = 0; link < session.links().count(); ++link) {
      const net::InitiatorState state = session.links().state(link);
      if (session.links().local_rail(link) != pair.from.rail || session.links().remote_rail(link) != pair.to.rail) continue;
      // One that could not be ended may stay while its successor is up.
      const net::Incarnation own = state == net::InitiatorState::kIdle ? 0 : session.links().incarnation(link);
      const net::Incarnation first = in_.try_emplace({pair.id, link}, own).first->second;
      is_up |= state == net::InitiatorState::kUp && first == own;
    }
    const bool ending = process.exiting() || peer.exiting();
    const bool awake = !process.stopped() && !process.dead() && !peer.stopped() && !peer.dead() && !ending;
    const bool quick = network_->BytesPerS(pair.from, pair.to) >= kQuickBytesPerS;
    if (!is_up || !awake || !quick || !session.outstanding() || !IsPeerAwake()) continue;
    const auto before = since_.find(pair.id);
    // Between two requests, which may be a moment within one event, nothing is waited for, and the silence begins anew.
    const Nanos since = std::max(before == since_.end() ? now : before->second, session.detector().watching_since());
    still[pair.id] = since;
    if (now - since <= process.io().options.silence + kFencedWithin) continue;
    checker_->Violation("stalled", "for " + std::to_string((now - since) / kNanosPerMs) + " ms a queue pair of " +
                                       std::to_string(pair.from.host) + "/" + std::to_string(pair.from.rail) + " to " +
                                       std::to_string(pair.to.host) + "/" + std::to_string(pair.to.rail) +
                                       " has reported nothing, and its link is up");
  }
  since_ = std::move(still);
}

}  // namespace r2cc::sim
