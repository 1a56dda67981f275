// Fakes link events: a test scripts them.
#ifndef R2CC_NETPLUGIN_RAILS_FAKE_LINK_EVENTS_H_
#define R2CC_NETPLUGIN_RAILS_FAKE_LINK_EVENTS_H_

#include <vector>

#include "netplugin/rails/link_events.h"

namespace r2cc::net {

class FakeLinkEvents final : public LinkEvents {
 public:
  int fd() const override { return -1; }
  void Poll(std::vector<RailLinkEvent>* events) override {
    events->insert(events->end(), pending_.begin(), pending_.end());
    pending_.clear();
  }

  // For the next Poll().
  void Set(int rail, bool up) {
    RailLinkEvent event;
    event.rail = rail;
    event.up = up;
    event.reason = up ? "up" : "interface down";
    pending_.push_back(event);
  }

 private:
  std::vector<RailLinkEvent> pending_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_FAKE_LINK_EVENTS_H_
