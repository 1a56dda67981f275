// Chooses cross-rail links. When two ends have lost different rails, both have working rails that no home link uses; a cross-rail link
// joins two of them. Pure.
//
// A rail-only fabric joins no two different rails. Attempts fail there, and each pair that failed waits before it is tried again.
#ifndef R2CC_NETPLUGIN_LINK_CROSS_RAIL_H_
#define R2CC_NETPLUGIN_LINK_CROSS_RAIL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/core/clock.h"
#include "base/core/retry.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {

struct RailPair {
  uint16_t local = 0;
  uint16_t remote = 0;

  friend auto operator<=>(const RailPair&, const RailPair&) = default;
};

// Remembers which pairs have failed lately. A fabric that does not join a pair may change, so each pair is tried again, at ever longer
// intervals.
class BackOffTable {
 public:
  void Failed(RailPair pair, Nanos now);
  void Worked(RailPair pair) { troubles_.erase(pair); }
  // Nothing: the pair has to wait. Otherwise its turn; the pair with the least turn comes first. With `last_way` the turn is the time of
  // its last failure, so that no pair starves.
  std::optional<Nanos> Turn(RailPair pair, bool last_way, Nanos now) const;

 private:
  struct Trouble {
    Nanos failed_at = 0;
    Retry retry{tuning::kSlowRetryLeast, tuning::kPairWaitMost};
  };
  std::map<RailPair, Trouble> troubles_;
};

// A home link, as far as the choice of cross-rail links needs it.
struct HomeState {
  RailPair rails;
  bool up = false;
  bool lost = false;  // it was tried, and is not up
};

// The rails that may work (`local_works`, `remote_works`, by rail) and that no home link uses or is about to use; none while no home link
// is lost.
struct FreeRails {
  std::vector<uint16_t> local, remote;
};
FreeRails RailsForCrossRail(std::span<const HomeState> homes, const std::vector<bool>& local_works, const std::vector<bool>& remote_works);

// True if both rails of the cross-rail link have a home link again that is up. If it retired sooner, a rail would be idle until its own
// link is up.
bool IsRetired(RailPair pair, std::span<const HomeState> homes);

// Returns the cross-rail links to open: each rail is used once, the least turns come first, and equal turns go by the lowest numbers.
// `free_local`, `free_remote`: rails that may work and that no home link uses. `present`: cross-rail links that exist and stay. `turn`:
// nothing for a pair that a home link joins, or that failed lately.
std::vector<RailPair> ChooseCrossRailLinks(std::span<const uint16_t> free_local, std::span<const uint16_t> free_remote,
                                           std::span<const RailPair> present, const std::function<std::optional<Nanos>(RailPair)>& turn);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_CROSS_RAIL_H_
