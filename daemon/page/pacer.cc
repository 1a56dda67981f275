#include "daemon/page/pacer.h"

namespace r2cc::daemon {

Nanos Pacer::PublishAt(const health::NodeState& last, const health::NodeState& next, bool inconclusive) const {
  if (next.status != last.status || next.nics != last.nics || next.probe_nonce != last.probe_nonce) return 0;
  const bool silent = next.pairs.silent() > 0 || last.pairs.silent() > 0;
  return published_at_ + (inconclusive || silent ? kSilenceInterval : kKeepAliveInterval);
}

Nanos Pacer::PlanAt(size_t nodes) const {
  return nodes <= kPlanAtOnceNodes ? planned_at_ : planned_at_ + kPlanIntervalPerNode * static_cast<Nanos>(nodes - kPlanAtOnceNodes);
}

bool Pacer::Wait(Nanos when) {
  if (timer_at_ != 0 && timer_at_ <= when) return false;
  timer_at_ = when;
  return true;
}

bool Pacer::Rang(Nanos when) {
  if (timer_at_ != when) return false;
  timer_at_ = 0;
  return true;
}

}  // namespace r2cc::daemon
