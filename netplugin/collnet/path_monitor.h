// Decides to which members this one has no path. A loss counts after a while, and so does a return. Pure: time is an argument.
#ifndef R2CC_NETPLUGIN_COLLNET_PATH_MONITOR_H_
#define R2CC_NETPLUGIN_COLLNET_PATH_MONITOR_H_

#include <cstdint>
#include <vector>

#include "base/core/clock.h"

namespace r2cc::collnet {

class PathMonitor {
 public:
  explicit PathMonitor(uint32_t members) : paths_(members) {}

  // `up`: some rail joins this member and that one now. `in_use`: operations may be in flight; otherwise a return counts at once. True: the
  // result of HasPath() has changed.
  bool Observe(uint32_t member, bool up, bool in_use, Nanos now);
  bool HasPath(uint32_t member) const { return paths_[member].up; }
  // In order.
  std::vector<uint32_t> Unreachable() const;

 private:
  struct Path {
    bool up = true;       // the state that counts
    Nanos differs = 0;    // for how long another state has been observed
    Nanos observed = -1;  // when it was observed last; -1: never
  };
  std::vector<Path> paths_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PATH_MONITOR_H_
