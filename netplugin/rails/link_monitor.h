// Implements LinkEvents over this namespace's kernel.
#ifndef R2CC_NETPLUGIN_RAILS_LINK_MONITOR_H_
#define R2CC_NETPLUGIN_RAILS_LINK_MONITOR_H_

#include <memory>
#include <string>
#include <vector>

#include "base/core/netlink.h"
#include "netplugin/rails/link_tracker.h"

namespace r2cc::net {

class LinkMonitor final : public LinkEvents {
 public:
  // Must be called in the network namespace of the rails. What changed since `rails` was resolved comes with the first Poll()s. Null and
  // one line in `error` if the kernel refuses.
  static std::unique_ptr<LinkMonitor> Create(const std::vector<Rail>& rails, std::string* error);

  int fd() const override { return socket_->fd(); }
  void Poll(std::vector<RailLinkEvent>* events) override;

 private:
  LinkMonitor(const std::vector<Rail>& rails, std::unique_ptr<NetlinkSocket> socket) : tracker_(rails), socket_(std::move(socket)) {}

  LinkTracker tracker_;
  std::unique_ptr<NetlinkSocket> socket_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_LINK_MONITOR_H_
