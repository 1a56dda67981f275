#include "netplugin/rails/link_settle.h"

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

std::vector<RailLinkEvent> LinkSettle::Take(const std::vector<RailLinkEvent>& changes, Nanos now) {
  std::vector<RailLinkEvent> counts;
  for (const RailLinkEvent& event : changes) {
    if (event.up) {
      rising_[event.rail] = {event, now};
    } else {
      rising_.erase(event.rail);
      counts.push_back(event);
    }
  }
  std::erase_if(rising_, [&](const auto& entry) {
    if (now - entry.second.since < tuning::kRailSettle) return false;
    counts.push_back(entry.second.event);
    return true;
  });
  return counts;
}

}  // namespace r2cc::net
