// The seam to the kernel's link events. Real: netlink_link_watch.h; fake: fake_link_watch.h.
#ifndef R2CC_HEALTH_IO_LINK_WATCH_H_
#define R2CC_HEALTH_IO_LINK_WATCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace r2cc::health {

// Facts about one interface of this network namespace.
struct LinkFact {
  std::string interface;
  int ifindex = 0;
  bool present = true;  // false: the interface is gone
  bool up = false;      // administratively up and with a carrier
  std::string mac;      // "02:00:00:00:00:01"; empty: none
  uint32_t mtu = 0;     // in bytes; 0: not known

  friend bool operator==(const LinkFact&, const LinkFact&) = default;
};

class LinkWatch {
 public:
  virtual ~LinkWatch() = default;

  // `complete`: `facts` are all interfaces of the namespace, so one that is not among them does not exist. Otherwise `facts` are what
  // changed.
  using Handler = std::function<void(const std::vector<LinkFact>& facts, bool complete)>;

  // Calls `handler` on the executor's thread: with a complete list before Start returns, then with every change, and with a complete
  // list again whenever events were lost. Once. Executor thread.
  virtual absl::Status Start(Handler handler) = 0;

  // Asks the kernel again; the answer comes as a complete list. Executor thread.
  virtual void Refresh() = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_LINK_WATCH_H_
