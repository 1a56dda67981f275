// Turns the kernel's link and address events into the ups and downs of rails. Pure.
//
// A rail is its interface's name. An interface that was removed and is made again under that name is the rail's again. The rail uses one of
// its addresses: the same as before as long as it exists and no other node has the same; otherwise that of PreferredAddress(), of the
// family that the rail began with. An interface gets a link-local address automatically when it comes up, so only a rail that began with
// one takes another. A rail of fixed_address waits for its own.
#ifndef R2CC_NETPLUGIN_RAILS_LINK_TRACKER_H_
#define R2CC_NETPLUGIN_RAILS_LINK_TRACKER_H_

#include <map>
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

  // Takes one event in the order of a NetlinkSocket's stream; appends what it changes. During a dump, interfaces and addresses that were
  // not mentioned yet count as before. A rail that changes its address goes down and comes up.
  void Apply(const NetEvent& event, std::vector<RailLinkEvent>* changes);

 private:
  struct Address {
    IpAddress address;
    bool seen = true;  // since the last kResync
  };
  // An interface of the namespace, rail or not: its name may become a rail's.
  struct Interface {
    std::string name;
    bool admin_up = false;
    bool carrier_up = false;
    std::vector<Address> addresses;  // in the order in which they came
    bool seen = true;
  };
  struct State {
    int rail = 0;
    std::string interface;
    int ifindex = 0;    // 0: there is no such interface now
    IpAddress address;  // the last one; empty until the interface has one
    bool fixed_address = false;
    bool link_local = false;
    bool was_up = false;
  };

  void ApplyLink(const NetEvent& event);
  void Forget(int ifindex);
  void ForgetUnseen();
  void ApplyAddress(const NetEvent& event);
  static const Address* Find(const Interface& interface, const std::string& text);
  static IpAddress Choose(const Interface& interface, const State& state);
  void Judge(State* state, std::vector<RailLinkEvent>* changes) const;

  std::map<int, Interface> interfaces_;  // by index
  std::vector<State> states_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_LINK_TRACKER_H_
