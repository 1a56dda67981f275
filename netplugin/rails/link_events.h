// Reports changes of the rails' interfaces, from the local kernel.
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
  // The address of the rail if it is up. It may differ from the last one, because addresses come and go.
  IpAddress address;
};

// I/O thread only.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // Readable when Poll() may have something; -1: there is no descriptor to wait for.
  virtual int fd() const = 0;
  // Appends the changes since the last call, the oldest first; never blocks. Call it when fd() is readable, and also a few times a second.
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
