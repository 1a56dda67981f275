// Tracks the rails of both ends at the initiator: which are up, how they can be joined, and the health page's verdicts on them. Pure.
#ifndef R2CC_NETPLUGIN_LINK_SESSION_RAILS_H_
#define R2CC_NETPLUGIN_LINK_SESSION_RAILS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/frame.h"
#include "netplugin/link/transport_choice.h"

namespace r2cc::net {

// Rails that a call names must exist: `local` below local_count(), `remote` below remote_count().
class SessionRails {
 public:
  explicit SessionRails(std::vector<TransportSet> local_transports);

  // Enters the peer's rails. Returns those that are up and whose endpoints have changed. A later call with another number of rails changes
  // nothing: the links are made for the first number.
  std::vector<uint16_t> SetRemoteRails(std::span<const RailInfo> remote_rails);

  uint16_t local_count() const { return static_cast<uint16_t>(local_.size()); }
  uint16_t remote_count() const { return static_cast<uint16_t>(remote_.size()); }

  void SetLocalUp(uint16_t rail, bool up) { local_[rail].up = up; }
  void SetRemoteUp(uint16_t rail, bool up) { remote_[rail].up = up; }
  // The peer reports that its rail came up. False: a copy of a report that came a moment ago on another channel.
  bool ReportedUp(uint16_t rail, Nanos now);
  // These return true if the verdict is new.
  bool SetLocalVerdict(uint16_t rail, RailVerdict verdict);
  bool SetRemoteVerdict(uint16_t rail, RailVerdict verdict);
  bool SetPathBroken(RailPair rails, bool broken);

  bool local_up(uint16_t rail) const { return local_[rail].up; }
  bool remote_up(uint16_t rail) const { return remote_[rail].up; }
  bool path_broken(RailPair rails) const { return broken_paths_.contains(rails); }
  // For each rail: it is up, and the page has not failed it. On the last way to a peer no verdict counts, nor the peer's own report of its
  // rail: the peer may have no channel to correct that report.
  std::vector<bool> LocalWorks(bool last_way) const;
  std::vector<bool> RemoteWorks(bool last_way) const;
  // The page has failed one of the two, or the path between them.
  bool Failed(RailPair rails) const {
    return local_[rails.local].verdict.failed || remote_[rails.remote].verdict.failed || path_broken(rails);
  }
  // The transport that joins them, fixed by the peer's first report. Nothing if they have none in common.
  std::optional<TransportKind> TransportOf(RailPair rails) const {
    return ChooseTransport(local_[rails.local].transports, remote_[rails.remote].transports);
  }
  bool Joinable(RailPair rails) const { return TransportOf(rails).has_value(); }
  // Some pair is joined by a transport whose sender places data.
  bool any_placed_by_sender() const;
  // The weight that the plan allows on both rails.
  uint16_t WeightPermille(RailPair rails) const {
    return std::min(local_[rails.local].verdict.weight_permille, remote_[rails.remote].verdict.weight_permille);
  }

 private:
  struct LocalState {
    TransportSet transports = 0;
    bool up = true;
    RailVerdict verdict = {};
  };
  struct RemoteState {
    bool up = false;
    TransportSet transports = 0;
    RailVerdict verdict = {};
    Nanos reported_up;  // when the peer last reported it up
    std::vector<RailEndpoint> endpoints = {};
  };

  std::vector<LocalState> local_;
  std::vector<RemoteState> remote_;
  std::set<RailPair> broken_paths_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SESSION_RAILS_H_
