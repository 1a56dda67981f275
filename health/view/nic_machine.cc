#include "health/view/nic_machine.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "health/view/nic_table.h"

namespace r2cc::health {
namespace {

// proof_max is reached long before. A NIC that flapped all day is forgiven half an hour later.
constexpr uint32_t kFlapLevelMax = 32;

std::string InMs(Nanos time) { return std::to_string(time / kNanosPerMs) + " ms"; }

// Sets a flag; false if it already was so.
bool Set(bool* flag, bool value) {
  if (*flag == value) return false;
  *flag = value;
  return true;
}

}  // namespace

const char* NicEventName(NicEvent event) {
  switch (event) {
    case NicEvent::kLinkUp: return "link-up";
    case NicEvent::kLinkDown: return "link-down";
    case NicEvent::kImpaired: return "impaired";
    case NicEvent::kUnimpaired: return "unimpaired";
    case NicEvent::kSuspected: return "suspected";
    case NicEvent::kForgiven: return "forgiven";
    case NicEvent::kDrain: return "drain";
    case NicEvent::kUndrain: return "undrain";
    case NicEvent::kDrillFail: return "drill-fail";
    case NicEvent::kDrillRestore: return "drill-restore";
    case NicEvent::kSilent: return "silent";
    case NicEvent::kAnswered: return "answered";
    case NicEvent::kNoCable: return "no-cable";
    case NicEvent::kProved: return "proved";
    case NicEvent::kForgotten: return "forgotten";
  }
  return "unknown";
}

NicMachine::NicMachine(const NicPolicy& policy, Nanos now) : policy_(policy), since_(now), flaps_(policy.flap_decay, kFlapLevelMax) {
  reason_ = ReasonFor(state_);
}

NicTransition NicMachine::Handle(NicEvent event, Nanos now, const std::string& cause) {
  R2CC_CHECK(event != NicEvent::kProved && event != NicEvent::kForgotten);
  if (Remember(event, now, cause)) return Step(event, now);
  reason_ = ReasonFor(state_);  // no news, but perhaps a newer cause
  return {state_, state_, reason_};
}

void NicMachine::EndDrillAt(Nanos when) {
  R2CC_CHECK(drill_failed_);
  drill_until_ = when;
}

NicTransition NicMachine::Tick(Nanos now) {
  if (drill_until_ != 0 && now >= drill_until_) return Handle(NicEvent::kDrillRestore, now);
  // The complaint first: a NIC whose proof ends as its complaint is forgotten is healthy at once.
  if (suspected_until_ != 0 && now >= suspected_until_) {
    suspected_until_ = 0;
    return Step(NicEvent::kForgotten, now);
  }
  if (proof_until_ != 0 && now >= proof_until_) {
    proof_until_ = 0;
    return Step(NicEvent::kProved, now);
  }
  return {state_, state_, reason_};
}

Nanos NicMachine::next_tick() const {
  const auto due = [](Nanos when) { return when != 0 ? when : kNever; };
  return std::min({due(suspected_until_), due(proof_until_), due(drill_until_)});
}

bool NicMachine::Remember(NicEvent event, Nanos now, const std::string& cause) {
  switch (event) {
    case NicEvent::kLinkUp: return RememberLink(true, now, cause);
    case NicEvent::kLinkDown: return RememberLink(false, now, cause);
    case NicEvent::kImpaired: impaired_cause_ = cause; return Set(&impaired_, true);
    case NicEvent::kUnimpaired: return Set(&impaired_, false);
    case NicEvent::kSuspected: return RememberComplaint(now, cause);
    case NicEvent::kForgiven: {
      const bool news = suspected();
      suspected_until_ = 0;
      return news;
    }
    case NicEvent::kDrain: return Set(&drained_, true);
    case NicEvent::kUndrain: return Set(&drained_, false);
    case NicEvent::kDrillFail:
      if (!Set(&drill_failed_, true)) return false;
      suspected_until_ = 0;
      return true;
    case NicEvent::kDrillRestore:
      if (!Set(&drill_failed_, false)) return false;
      drill_until_ = 0;
      if (link_up_ && !silent_) {
        // A longer proof that a real failure asked for goes on.
        proof_until_ = std::max(proof_until_, now + policy_.drill_proof);
        proof_cause_ = "drill over: proving for " + InMs(proof_until_ - now);
      }
      return true;
    case NicEvent::kSilent: return RememberSilence(true, now, cause);
    case NicEvent::kAnswered: return RememberSilence(false, now, cause);
    case NicEvent::kNoCable: return RememberNoCable(now, cause);
    case NicEvent::kProved:
    case NicEvent::kForgotten: break;
  }
  R2CC_CHECK(!"an event of Tick, or no event at all");
  return false;
}

bool NicMachine::RememberLink(bool up, Nanos now, const std::string& cause) {
  const bool first_report = !link_known_;
  link_known_ = true;
  const bool was_up = link_up_;
  const bool was_uncabled = std::exchange(uncabled_, false);
  link_up_ = up;
  had_link_ = had_link_ || up;
  if (!up) link_cause_ = cause.empty() ? "link down" : cause;
  if (was_up == up && !first_report) return was_uncabled;
  if (up && !first_report) {
    proof_until_ = now + ProofTime();
    proof_cause_ = (was_uncabled ? "a cable was put in: proving for " : "link up again: proving for ") + InMs(ProofTime());
  }
  if (!up) {
    proof_until_ = 0;
    suspected_until_ = 0;
    if (was_up && !silent_) CountFlap(now);
    silent_ = false;
  }
  return true;
}

bool NicMachine::RememberNoCable(Nanos now, const std::string& cause) {
  if (had_link_) return RememberLink(false, now, cause);
  const bool was_uncabled = uncabled_;
  RememberLink(false, now, cause);
  uncabled_ = true;
  return !was_uncabled;
}

bool NicMachine::RememberSilence(bool silent, Nanos now, const std::string& cause) {
  if (!link_up_) return false;
  if (silent) silent_cause_ = cause;
  if (!Set(&silent_, silent)) return false;
  if (silent) {
    proof_until_ = 0;
    suspected_until_ = 0;
    CountFlap(now);
  } else {
    proof_until_ = now + ProofTime();
    proof_cause_ = "answers again: proving for " + InMs(ProofTime());
  }
  return true;
}

bool NicMachine::RememberComplaint(Nanos now, const std::string& cause) {
  if (state_ == NicState::kFailed || state_ == NicState::kUncabled) return false;  // it is known to carry nothing
  const bool news = !suspected();
  suspected_until_ = now + policy_.suspicion;
  suspected_cause_ = cause;
  return news;
}

void NicMachine::CountFlap(Nanos now) {
  flaps_.Count(now);
  ++flaps_total_;
}

Nanos NicMachine::ProofTime() const { return flaps_.ProofTime(policy_.proof_min, policy_.proof_max); }

NicTransition NicMachine::Step(NicEvent event, Nanos now) {
  const NicState from = state_;
  switch (StepFor(state_, event)) {
    case NicStep::kStay: break;
    case NicStep::kHealthy: state_ = NicState::kHealthy; break;
    case NicStep::kDegraded: state_ = NicState::kDegraded; break;
    case NicStep::kSuspect: state_ = NicState::kSuspect; break;
    case NicStep::kFailed: state_ = NicState::kFailed; break;
    case NicStep::kDrained: state_ = NicState::kDrained; break;
    case NicStep::kRemembered: state_ = Remembered(); break;
    case NicStep::kImpossible: R2CC_CHECK(!"an empty cell of the NIC table");
  }
  if (state_ != from) since_ = now;
  reason_ = ReasonFor(state_);
  return {from, state_, reason_};
}

NicState NicMachine::Remembered() const {
  if (drill_failed_ || silent_) return NicState::kFailed;
  if (link_known_ && !link_up_) return uncabled_ ? NicState::kUncabled : NicState::kFailed;
  if (drained_) return NicState::kDrained;
  if (!link_known_ || proof_until_ != 0) return NicState::kProving;
  if (suspected()) return NicState::kSuspect;
  return impaired_ ? NicState::kDegraded : NicState::kHealthy;
}

std::string NicMachine::ReasonFor(NicState state) const {
  const bool link_failed = link_known_ && !link_up_;
  switch (state) {
    case NicState::kHealthy: return "link up";
    case NicState::kDegraded: return impaired_cause_;
    case NicState::kSuspect: return suspected_cause_;
    case NicState::kFailed: {
      const std::string cause = link_failed ? link_cause_ : silent_ ? silent_cause_ : "";
      if (!drill_failed_) return cause;
      return cause.empty() ? "drill: fail-nic" : "drill: fail-nic; " + cause;
    }
    case NicState::kProving: return link_known_ ? proof_cause_ : "its link state is not known yet";
    case NicState::kDrained: return "drained by the operator";
    case NicState::kUncabled: return link_cause_ + ", and it was never up: no cable yet";
  }
  return "";
}

}  // namespace r2cc::health
