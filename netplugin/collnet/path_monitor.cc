#include "netplugin/collnet/path_monitor.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::collnet {

bool PathMonitor::Observe(uint32_t member, bool up, bool in_use, Nanos now) {
  Path& path = paths_[member];
  const Nanos before = std::exchange(path.observed, now);
  if (up == path.up || before < 0) {
    path.differs = 0;
    return false;
  }
  path.differs += std::clamp<Nanos>(now - before, 0, 2 * net::tuning::kObserveEvery);
  if (path.differs < (path.up ? net::tuning::kPathLostAfter : in_use ? net::tuning::kPathBackAfter : 0)) return false;
  path.up = up;
  path.differs = 0;
  return true;
}

std::vector<uint32_t> PathMonitor::Unreachable() const {
  std::vector<uint32_t> members;
  for (uint32_t member = 0; member < paths_.size(); ++member)
    if (!paths_[member].up) members.push_back(member);
  return members;
}

}  // namespace r2cc::collnet
