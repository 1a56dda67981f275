// Finds which rails of this node carry the process's data, from the links to its peers. Pure.
#ifndef R2CC_NETPLUGIN_LINK_RAIL_USE_H_
#define R2CC_NETPLUGIN_LINK_RAIL_USE_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "netplugin/flow/tuning.h"
#include "netplugin/link/retry_policy.h"

namespace r2cc::net {

// The rails that the links to one peer use. Bit k: rail k of this node, which has at most 64.
struct RailUse {
  uint64_t up = 0;    // some link is up
  uint64_t lost = 0;  // some link has been lost for kRailLostAfter

  // Adds one link. `lost_for`: for how long it has been lost; 0: it is not lost.
  void Add(uint16_t rail, bool is_up, Nanos lost_for) {
    const uint64_t bit = uint64_t{1} << rail;
    if (is_up)
      up |= bit;
    else if (lost_for >= tuning::kRailLostAfter)
      lost |= bit;
  }

  friend bool operator==(const RailUse&, const RailUse&) = default;
};

// Collects all peers: a rail is lost if it reaches no peer. A peer that no rail reaches is ignored.
class LostRails {
 public:
  void Add(const RailUse& peer) {
    if (peer.up == 0) return;
    up_ |= peer.up;
    lost_ |= peer.lost;
  }
  uint64_t bits() const { return lost_ & ~up_; }

 private:
  uint64_t up_ = 0, lost_ = 0;
};

// Collects all peers: how many rails are missing to the peer that the fewest rails reach. Peers that no rail reaches do not count.
class FewestRails {
 public:
  void Add(const RailUse& peer) {
    if (peer.up != 0) lost_ = std::max(lost_, static_cast<uint32_t>(std::popcount(peer.lost & ~peer.up)));
  }
  uint32_t lost() const { return lost_; }

 private:
  uint32_t lost_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RAIL_USE_H_
