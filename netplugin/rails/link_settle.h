// When a rail counts as up whose link has come up: once it has stayed so for a moment. Down counts at once. Pure.
//
// A switch forwards a little later than its port has a link. What is asked on the rail before that is lost, and the kernel asks anew for a
// neighbour, or for a connection, only after a second.
#ifndef R2CC_NETPLUGIN_RAILS_LINK_SETTLE_H_
#define R2CC_NETPLUGIN_RAILS_LINK_SETTLE_H_

#include <map>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/rails/link_events.h"

namespace r2cc::net {

class LinkSettle {
 public:
  // Takes what the kernel tells now, and returns what counts now, the oldest first. Call it also when nothing was told.
  std::vector<RailLinkEvent> Take(const std::vector<RailLinkEvent>& told, Nanos now);

 private:
  struct Rising {
    RailLinkEvent event;
    Nanos since = 0;
  };
  std::map<int, Rising> rising_;  // by rail
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_LINK_SETTLE_H_
