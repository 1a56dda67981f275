#include "netplugin/link/link_progress.h"

#include <algorithm>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
void LinkProgress::Sample(std::span<const PathFacts> facts, Nanos now) {
  paths_.resize(facts.size());
  facts_.assign(facts.begin(), facts.end());
  bool bulk_moves = false;
  for (size_t i = 0; i < facts.size(); ++i) {
    Path& path = paths_[i];
    const bool waits = facts[i].unacknowledged && (facts[i].window_open || IsActive(Mutant::kClosedWindowIsSilence));
    const bool moved = facts[i].delivered_bytes != path.delivered_bytes;
    bulk_moves |= moved && !facts[i].control;
    path.delivered_bytes = facts[i].delivered_bytes;
    if (!waits)
      path.since = 0;
    else if (moved || path.since == 0)
      path.since = now;
    path.stalls = path.since != 0 && path.since != now;
  }
  Stall stall{.paths = static_cast<uint16_t>(facts.size())};
  for (size_t i = 0; i < facts.size(); ++i) {
    const Nanos since = paths_[i].since;
    if (!paths_[i].stalls) continue;
    ++stall.stalled;
    const bool sent_again = facts[i].timeouts >= (facts[i].control && bulk_moves ? tuning::kTimeoutsBehindBulk : 1);
    const bool confirmed = sent_again && now - since > facts[i].silent_most;
    if (stall.since == 0 || (confirmed && !stall.confirmed) || (confirmed == stall.confirmed && since < stall.since))
      stall.since = since, stall.confirmed = confirmed;
  }
  stall_ = stall;
}

bool LinkProgress::bulk_delivered() const {
  const auto delivered = [](const PathFacts& path) { return path.control || (path.delivered_bytes > 0 && !path.unacknowledged); };
  return !facts_.empty() && std::all_of(facts_.begin(), facts_.end(), delivered);
}

LinkFault LinkProgress::Diagnose(bool proving) const {
  uint32_t passed_bytes = UINT32_MAX;
  bool all_bulk_stalls = stall_.stalled > 0, size_matters = proving, control_stalls = false;
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].control) {
      size_matters &= !paths_[i].stalls;
      control_stalls |= paths_[i].stalls;
      continue;
    }
    all_bulk_stalls &= paths_[i].stalls;
    size_matters &= facts_[i].passed_packet_bytes > 0 && facts_[i].packet_bytes > facts_[i].passed_packet_bytes;
    passed_bytes = std::min(passed_bytes, facts_[i].passed_packet_bytes);
  }
  if (all_bulk_stalls && size_matters) return {plan::EvidenceCause::kLargeLost, passed_bytes};
  // A queue pair has no connection for control: whether that is silent, its pings say.
  if (stall_.stalled == 0 || (stall_.stalled == stall_.paths && control_stalls)) return {plan::EvidenceCause::kSilence, 0};
  return {plan::EvidenceCause::kStalled, plan::StalledDetail(stall_.stalled, stall_.paths)};
}

}  // namespace r2cc::net
