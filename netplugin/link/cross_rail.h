// When two ends have lost different rails, their home links leave working rails over at both: which of those to join. Pure.
//
// A rail-only fabric joins none of them: that shows as attempts that fail, and a pair that failed is left alone for a while.
#ifndef R2CC_NETPLUGIN_LINK_CROSS_RAIL_H_
#define R2CC_NETPLUGIN_LINK_CROSS_RAIL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/core/back_off.h"
#include "base/core/clock.h"

namespace r2cc::net {

struct RailPair {
  uint16_t local = 0;
  uint16_t remote = 0;

  friend auto operator<=>(const RailPair&, const RailPair&) = default;
};

// Which pairs have failed of late. A fabric that does not join them may change: they are tried again, ever more seldom.
class BackOffTable {
 public:
  static constexpr Nanos kWaitLeast = kNanosPerSecond;
  static constexpr Nanos kWaitMost = 60 * kNanosPerSecond;

  void Failed(RailPair pair, Nanos now);
  void Worked(RailPair pair) { troubles_.erase(pair); }
  bool WorthATry(RailPair pair, Nanos now) const;

 private:
  struct Trouble {
    Nanos retry_at = 0;
    ExponentialBackOff back_off{kWaitLeast, kWaitMost};
  };
  std::map<RailPair, Trouble> troubles_;
};

// A home link, as far as cross-rail links go.
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

// Both rails of the cross-rail link have a home link again that is up. Retired any sooner, it would leave a rail idle until its own link is
// there.
bool IsRetired(RailPair pair, std::span<const HomeState> homes);

// `free_local`, `free_remote`: rails that may work and that no home link uses. `present`: cross-rail links that exist and stay.
// `worth_a_try`: false for a pair that a home link joins, or that failed lately. Returns the cross-rail links to open: each rail is used
// once, and the lowest numbers come first.
std::vector<RailPair> ChooseCrossRailLinks(std::span<const uint16_t> free_local, std::span<const uint16_t> free_remote,
                                           std::span<const RailPair> present, const std::function<bool(RailPair)>& worth_a_try);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_CROSS_RAIL_H_
