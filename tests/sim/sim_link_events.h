// Link events of a simulated process: its loop's descriptor is readable while there are some, as netlink's is.
#ifndef R2CC_TESTS_SIM_SIM_LINK_EVENTS_H_
#define R2CC_TESTS_SIM_SIM_LINK_EVENTS_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <vector>

#include "base/core/unique_fd.h"
#include "netplugin/rails/fake_link_events.h"

namespace r2cc::sim {

class SimLinkEvents final : public net::LinkEvents {
 public:
  int fd() const override { return fd_.get(); }
  void Poll(std::vector<net::RailLinkEvent>* events) override {
    eventfd_t count = 0;
    eventfd_read(fd_.get(), &count);
    events_.Poll(events);
  }

  void Set(int rail, bool up) {
    events_.Set(rail, up);
    eventfd_write(fd_.get(), 1);
  }

 private:
  net::FakeLinkEvents events_;
  const UniqueFd fd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_LINK_EVENTS_H_
