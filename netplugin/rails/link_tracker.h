// From the kernel's link and address events to the ups and downs of rails: pure.
#ifndef R2CC_NETPLUGIN_RAILS_LINK_TRACKER_H_
#define R2CC_NETPLUGIN_RAILS_LINK_TRACKER_H_

#include <string>
#include <vector>

#include "base/core/netlink.h"
#include "netplugin/rails/link_events.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

class LinkTracker {
 public:
  // Begins with the state in `rails`; address-only rails never change.
  explicit LinkTracker(const std::vector<Rail>& rails);

  // Takes one event in the order of a NetlinkSocket's stream; appends what it changes. While a dump is under way, what has not been
  // mentioned yet counts as it was before. An interface that was removed and comes again under its name is followed.
  void Apply(const NetEvent& event, std::vector<RailLinkEvent>* changes);

 private:
  struct State {
    int rail;
    std::string interface;
    int ifindex;        // 0: there is no such interface now
    IpAddress address;  // empty until the interface has one
    bool link_up;       // and carrier
    bool admin_up;
    bool has_address;
    bool was_up;
    bool seen_link = true;  // since the last kResync
    bool seen_address = true;
  };

  void ApplyLink(const NetEvent& event, State* state);
  void ApplyAddress(const NetEvent& event, State* state);
  void Report(State* state, std::vector<RailLinkEvent>* changes);

  std::vector<State> states_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_LINK_TRACKER_H_
