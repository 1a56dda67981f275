// Decides when a rail counts as up after its link came up: once the link has stayed up for a moment. Down counts at once. Pure.
//
// A switch forwards a little later than its port has a link. Queries on the rail before that are lost, and the kernel repeats a query for a
// neighbour, or a connection attempt, only after a second.
#ifndef R2CC_NETPLUGIN_RAILS_LINK_SETTLE_H_
#define R2CC_NETPLUGIN_RAILS_LINK_SETTLE_H_

#include <map>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/rails/link_events.h"

namespace r2cc::net {

class LinkSettle {
 public:
  // Takes the kernel's events of now, and returns those that count now, the oldest first. Call it also without events.
  std::vector<RailLinkEvent> Take(const std::vector<RailLinkEvent>& changes, Nanos now);

 private:
  struct Rising {
    RailLinkEvent event;
    Nanos since = 0;
  };
  std::map<int, Rising> rising_;  // by rail
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_LINK_SETTLE_H_
