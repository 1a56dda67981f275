// What an initiator knows of the rails of both ends: which are up, how they can be joined, what the health page says of them. Pure.
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

// Rails that are named must exist: `local` below local_count(), `remote` below remote_count().
class SessionRails {
 public:
  explicit SessionRails(std::vector<TransportSet> local_transports);

  // The peer's rails. Gives those that are up and are found elsewhere than before. Told again with another number of rails it changes
  // nothing: the links are made for the number that was told first.
  std::vector<uint16_t> SetRemoteRails(std::span<const RailInfo> remote_rails);

  uint16_t local_count() const { return static_cast<uint16_t>(local_.size()); }
  uint16_t remote_count() const { return static_cast<uint16_t>(remote_.size()); }

  void SetLocalUp(uint16_t rail, bool up) { local_[rail].up = up; }
  void SetRemoteUp(uint16_t rail, bool up) { remote_[rail].up = up; }
  // The peer says that its rail came up. False: a copy of a word that came a moment ago on another channel.
  bool ToldUp(uint16_t rail, Nanos now);
  // True: that is news.
  bool SetLocalVerdict(uint16_t rail, RailVerdict verdict);
  bool SetRemoteVerdict(uint16_t rail, RailVerdict verdict);
  bool SetPathBroken(RailPair rails, bool broken);

  bool local_up(uint16_t rail) const { return local_[rail].up; }
  bool remote_up(uint16_t rail) const { return remote_[rail].up; }
  bool path_broken(RailPair rails) const { return broken_paths_.contains(rails); }
  // Of each rail: up, and not failed by the page. For the last way to a peer no verdict counts, nor what the peer said of its own rail: it
  // may have no channel to take that back.
  std::vector<bool> LocalWorks(bool last_way) const;
  std::vector<bool> RemoteWorks(bool last_way) const;
  // The page says that one of the two has failed, or the path between them.
  bool Failed(RailPair rails) const {
    return local_[rails.local].verdict.failed || remote_[rails.remote].verdict.failed || path_broken(rails);
  }
  // By which transport they are joined, for good: by what the peer first told. Nothing if they have none in common.
  std::optional<TransportKind> TransportOf(RailPair rails) const {
    return ChooseTransport(local_[rails.local].transports, remote_[rails.remote].transports);
  }
  bool Joinable(RailPair rails) const { return TransportOf(rails).has_value(); }
  // Some pair is joined by a transport whose sender places.
  bool any_placed_by_sender() const;
  // What the plan allows both.
  uint16_t WeightPermille(RailPair rails) const {
    return std::min(local_[rails.local].verdict.weight_permille, remote_[rails.remote].verdict.weight_permille);
  }

 private:
  struct LocalRail {
    TransportSet transports = 0;
    bool up = true;
    RailVerdict verdict = {};
  };
  struct RemoteRail {
    bool up = false;
    TransportSet transports = 0;
    RailVerdict verdict = {};
    Nanos told_up;  // when the peer last said so
    std::vector<RailEndpoint> endpoints = {};
  };

  std::vector<LocalRail> local_;
  std::vector<RemoteRail> remote_;
  std::set<RailPair> broken_paths_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SESSION_RAILS_H_
