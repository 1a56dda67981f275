#include "netplugin/transport/probes.h"

#include "base/core/check.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {

ProbeStep StepOf(ProbeState state, ProbeEvent event) {
  using S = ProbeStep;
  // By state: kNone, kConnecting, kStanding; by event: kAsked, kAskedAgain, kConnected, kEnded, kLate, kUnasked. A connection that was made
  // and ends leaves the verdict to the next one: a process that is alive hangs up on who does not greet.
  static constexpr ProbeStep kSteps[3][6] = {
      {S::kConnect, S::kConnect, S::kImpossible, S::kImpossible, S::kImpossible, S::kForget},
      {S::kNothing, S::kNothing, S::kStand, S::kFail, S::kGiveUp, S::kNothing},
      {S::kNothing, S::kReplace, S::kImpossible, S::kClose, S::kImpossible, S::kClose},
  };
  return kSteps[static_cast<size_t>(state)][static_cast<size_t>(event)];
}

void Probes::Ask(const OobAddress& peer, const Question& question) {
  const Entry at = probes_.try_emplace(peer).first;
  at->second.asked = question.asked;
  const bool again = at->second.state == ProbeState::kStanding && at->second.since < question.last_received;
  Do(at, again ? ProbeEvent::kAskedAgain : ProbeEvent::kAsked, ProbeResult::kSilent, question.asked);
}

std::optional<ProbeResult> Probes::AnswerTo(const OobAddress& peer, const Question& question) const {
  const auto at = probes_.find(peer);
  if (at == probes_.end()) return std::nullopt;
  const Probe& probe = at->second;
  if (probe.state == ProbeState::kStanding && probe.since >= question.last_received) {
    const bool runs = probe.hung_up > question.last_received && question.asked - probe.hung_up < tuning::kRunsFor;
    return runs ? ProbeResult::kRuns : ProbeResult::kAnswers;
  }
  if (probe.failed != 0 && probe.failed >= question.asked) return probe.failure;
  return std::nullopt;
}

Probes::Entry Probes::Find(uint64_t connection) {
  const auto it = connections_.find(connection);
  return it == connections_.end() ? probes_.end() : probes_.find(it->second);
}

void Probes::Connected(uint64_t connection, Nanos now) {
  if (const Entry at = Find(connection); at != probes_.end()) Do(at, ProbeEvent::kConnected, ProbeResult::kAnswers, now);
}

void Probes::Ended(uint64_t connection, ProbeResult result, Nanos now) {
  if (const Entry at = Find(connection); at != probes_.end()) Do(at, ProbeEvent::kEnded, result, now);
}

void Probes::Tick(Nanos now) {
  for (Entry at = probes_.begin(); at != probes_.end();) {
    const Entry probe = at++;
    if (probe->second.state == ProbeState::kConnecting && now - probe->second.since >= tuning::kConnectMost)
      Do(probe, ProbeEvent::kLate, ProbeResult::kSilent, now);
    if (now - probe->second.asked >= tuning::kProbeUnaskedFor) Do(probe, ProbeEvent::kUnasked, ProbeResult::kSilent, now);
  }
}

void Probes::Do(Entry at, ProbeEvent event, ProbeResult result, Nanos now) {
  Probe& probe = at->second;
  switch (StepOf(probe.state, event)) {
    case ProbeStep::kImpossible: R2CC_CHECK(false); return;
    case ProbeStep::kNothing: return;
    case ProbeStep::kConnect: return Connect(at, now);
    case ProbeStep::kReplace: Close(at); return Connect(at, now);
    case ProbeStep::kStand: return Enter(&probe, ProbeState::kStanding, now);
    case ProbeStep::kFail:
    case ProbeStep::kGiveUp:
      probe.failure = result;
      probe.failed = now;
      [[fallthrough]];
    case ProbeStep::kClose:
      if (event == ProbeEvent::kEnded && result == ProbeResult::kRuns) probe.hung_up = now;
      Close(at);
      return Enter(&probe, ProbeState::kNone, now);
    case ProbeStep::kForget: probes_.erase(at); return;
  }
}

void Probes::Enter(Probe* probe, ProbeState state, Nanos now) {
  probe->state = state;
  probe->since = now;
}

void Probes::Connect(Entry at, Nanos now) {
  at->second.connection = next_connection_++;
  connections_[at->second.connection] = at->first;
  actions_.push_back({ConnectionAction::Kind::kConnect, at->second.connection, at->first});
  Enter(&at->second, ProbeState::kConnecting, now);
}

// Also of one that has ended by itself: its descriptor is still open.
void Probes::Close(Entry at) {
  connections_.erase(at->second.connection);
  actions_.push_back({ConnectionAction::Kind::kClose, at->second.connection, at->first});
}

}  // namespace r2cc::net
