// Changes of the rails' interfaces, as the local kernel tells them.
#ifndef R2CC_NETPLUGIN_RAILS_LINK_EVENTS_H_
#define R2CC_NETPLUGIN_RAILS_LINK_EVENTS_H_

#include <vector>

#include "netplugin/rails/address.h"

namespace r2cc::net {

struct RailLinkEvent {
  int rail = 0;     // Rail::index
  bool up = false;  // it can carry traffic: up, with carrier and address
  const char* reason =
      "";  // one of "up", "interface down", "no carrier", "address removed", "duplicate address", "interface removed"; a literal
  // The address that the rail uses if it is up; it may be another one than before, as addresses come and go.
  IpAddress address;
};

// The I/O thread alone uses it.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // Readable when Poll() may have something; -1: there is nothing to wait for.
  virtual int fd() const = 0;
  // Appends the changes since the last call, the oldest first; never blocks. Call it when fd() is readable, and a few times a second
  // anyway.
  virtual void Poll(std::vector<RailLinkEvent>* events) = 0;
};

// For R2CC_LINK_MONITOR=0.
class NoLinkEvents final : public LinkEvents {
 public:
  int fd() const override { return -1; }
  void Poll(std::vector<RailLinkEvent>*) override {}
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_LINK_EVENTS_H_
