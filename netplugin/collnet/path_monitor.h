// To which members this one has no path. A loss counts after a while, and so does what comes back. Pure: time is an argument.
#ifndef R2CC_NETPLUGIN_COLLNET_PATH_MONITOR_H_
#define R2CC_NETPLUGIN_COLLNET_PATH_MONITOR_H_

#include <cstdint>
#include <vector>

#include "base/core/clock.h"

namespace r2cc::collnet {

class PathMonitor {
 public:
  // A connection whose first packet was lost is tried again after a second, and only then other rails: two members that start beside each
  // other, or fail over, are not taken to be without a path.
  static constexpr Nanos kLostAfter = 2 * kNanosPerSecond;
  // Operations that follow a plan which uses a path wait when it is lost again.
  static constexpr Nanos kBackAfter = 10 * kNanosPerSecond;
  // What the time since the observation before counts for at most: nobody observes while the job does something else.
  static constexpr Nanos kObservedMost = 200 * kNanosPerMs;

  explicit PathMonitor(uint32_t members) : paths_(members) {}

  // `up`: some rail joins this member and that one now. `in_use`: operations may be under way; else what comes back counts at once. True:
  // HasPath() says something else than before.
  bool Observe(uint32_t member, bool up, bool in_use, Nanos now);
  bool HasPath(uint32_t member) const { return paths_[member].up; }
  // In order.
  std::vector<uint32_t> Unreachable() const;

 private:
  struct Path {
    bool up = true;       // what counts
    Nanos differs = 0;    // so long it has been observed to be otherwise
    Nanos observed = -1;  // at which time; -1: never
  };
  std::vector<Path> paths_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PATH_MONITOR_H_
