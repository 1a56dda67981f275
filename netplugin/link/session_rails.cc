#include "netplugin/link/session_rails.h"

#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
SessionRails::SessionRails(std::vector<TransportSet> local_transports) {
  R2CC_CHECK(!local_transports.empty());
  for (const TransportSet transports : local_transports) local_.push_back({.transports = transports});
}

std::vector<uint16_t> SessionRails::SetRemoteRails(std::span<const RailInfo> remote_rails) {
  const bool first = remote_.empty();
  if (first) remote_.resize(remote_rails.size(), {.reported_up = -tuning::kCopiesWithin});
  std::vector<uint16_t> moved;
  if (remote_.size() != remote_rails.size()) return moved;
  for (uint16_t rail = 0; rail < remote_.size(); ++rail) {
    RemoteState& remote = remote_[rail];
    const RailInfo& info = remote_rails[rail];
    remote.up = info.up;
    if (first) remote.transports = TransportsOf(info);
    if (std::exchange(remote.endpoints, info.endpoints) == info.endpoints || !info.up) continue;
    // What was told of the old place is no copy of what is told of this one.
    remote.reported_up = -tuning::kCopiesWithin;
    moved.push_back(rail);
  }
  return moved;
}

bool SessionRails::ReportedUp(uint16_t rail, Nanos now) {
  remote_[rail].up = true;
  return now - std::exchange(remote_[rail].reported_up, now) >= tuning::kCopiesWithin;
}

bool SessionRails::SetLocalVerdict(uint16_t rail, RailVerdict verdict) { return std::exchange(local_[rail].verdict, verdict) != verdict; }

bool SessionRails::SetRemoteVerdict(uint16_t rail, RailVerdict verdict) { return std::exchange(remote_[rail].verdict, verdict) != verdict; }

bool SessionRails::SetPathBroken(RailPair rails, bool broken) {
  return broken ? broken_paths_.insert(rails).second : broken_paths_.erase(rails) > 0;
}

bool SessionRails::any_placed_by_sender() const {
  for (uint16_t local = 0; local < local_count(); ++local)
    for (uint16_t remote = 0; remote < remote_count(); ++remote)
      if (TransportOf({local, remote}) == TransportKind::kVerbs) return true;
  return false;
}

std::vector<bool> SessionRails::LocalWorks(bool last_way) const {
  std::vector<bool> works;
  for (const LocalState& rail : local_) works.push_back(rail.up && (last_way || !rail.verdict.failed));
  return works;
}

std::vector<bool> SessionRails::RemoteWorks(bool last_way) const {
  std::vector<bool> works;
  for (const RemoteState& rail : remote_) works.push_back(last_way || (rail.up && !rail.verdict.failed));
  return works;
}

}  // namespace r2cc::net
