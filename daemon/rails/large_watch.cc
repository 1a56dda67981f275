#include "daemon/rails/large_watch.h"

#include <algorithm>
#include <utility>

namespace r2cc::daemon {

LargeWatch::Verdict LargeWatch::Judge(const health::NicKey& nic, const Seen& seen, Nanos now) {
  Verdict verdict;
  if (seen.lost.empty()) {
    const auto known = nics_.find(nic.nic);
    if (known == nics_.end()) return verdict;
    if (!known->second.reported.empty()) verdict.report = "";
    nics_.erase(known);
    return verdict;
  }
  Nic& known = nics_.try_emplace(nic.nic, Nic{.since = now}).first->second;
  if (std::exchange(known.seen, seen.fault.kind) != seen.fault.kind) known.seen_since = now;
  verdict.ask = known.reported.empty() && now - known.since < kLargeSettle;
  if (now - known.since >= kLargeHold || !known.reported.empty()) verdict.broken = seen.lost;

  using Kind = health::FaultKind;
  const bool elsewhere = seen.fault.kind == Kind::kNone || seen.fault.kind == Kind::kPeers;
  const bool clear = seen.fault.kind == Kind::kPort || seen.fault.kind == Kind::kCable || seen.nodes < 2;
  const Nanos hold = clear ? kLargeHold : kLargeSettle;
  if (known.reported.empty() ? elsewhere || now - known.seen_since < hold
                             : now - std::max(known.reported_at, known.seen_since) < kLargeAgain)
    return verdict;
  std::string text = elsewhere ? "" : health::LargeFaultText(nic, seen.fault, seen.loss);
  if (text == known.reported) return verdict;
  known.reported_at = now;
  known.reported = text;
  verdict.report = std::move(text);
  return verdict;
}

bool LargeWatch::IsReported(const std::string& nic) const {
  const auto known = nics_.find(nic);
  return known != nics_.end() && !known->second.reported.empty();
}

}  // namespace r2cc::daemon
