// Tracks what happens around the process: the state of its rails, and the daemon's verdicts on all NICs. I/O thread only, except page() and
// the reports.
#ifndef R2CC_NETPLUGIN_TRANSPORT_CONTROL_PLANE_H_
#define R2CC_NETPLUGIN_TRANSPORT_CONTROL_PLANE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/attach/daemon_link.h"
#include "netplugin/config/config.h"
#include "netplugin/rails/link_events.h"
#include "netplugin/rails/link_settle.h"
#include "netplugin/transport/host.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/page_view.h"

namespace r2cc::net {

class ControlPlane {
 public:
  // Called when something changes.
  struct Listener {
    // Runs the call while no other thread uses what the peers of the process share; all calls below come that way.
    std::function<void(const std::function<void()>&)> exclusively;
    std::function<void(uint16_t rail, bool up)> rail_state;
    // The page has changed, or the daemon's names for this node.
    std::function<void()> verdicts;
    // A daemon that does not know this process yet has accepted it.
    std::function<void()> attached;
    // The daemon's name for this node or its rails differs from the one that peers got.
    std::function<void()> renamed;
    // The address of a rail that is up, called before each event.
    std::function<void(uint16_t rail, const IpAddress& address)> address;
  };
  ControlPlane(Host* host, Poller* poller, std::vector<FailRail> fail_rails, std::unique_ptr<LinkEvents> link_events,
               std::unique_ptr<DaemonLink> daemon)
      : host_(host),
        poller_(poller),
        fail_rails_(std::move(fail_rails)),
        link_events_(std::move(link_events)),
        daemon_(std::move(daemon)) {}

  // Call before the thread starts: waits a moment for the daemon, so that peers get this node's right name from the beginning.
  void AwaitDaemon();
  void Start(Listener listener);

  // Cheap if nothing happened.
  void Poll(Nanos now);

  // The page as of the last Poll(); never null.
  std::shared_ptr<const PageView> page() const {
    const MutexLock lock(page_mutex_);
    return page_;
  }
  void Report(const plan::EvidenceRecord& record) {
    const MutexLock lock(daemon_mutex_);
    daemon_->Report(record);
  }
  void ReportPeer(const std::string& node);
  void ReportTotals(Nanos now);
  // The process ends in order.
  void ReportEnding();

 private:
  void RailEvent(uint16_t rail, bool up, const char* reason);
  void LinkEventsCame(const std::vector<RailLinkEvent>& events);
  void LoseRails(Nanos now);
  void PollDaemon(Nanos now);
  // True if a name has changed.
  bool RefreshIdentity();

  Host* const host_;
  Poller* const poller_;              // the I/O thread's
  std::vector<FailRail> fail_rails_;  // R2CC_FAIL_RAILS that have not failed yet
  const std::unique_ptr<LinkEvents> link_events_;
  LinkSettle link_settle_;
  Mutex daemon_mutex_;
  const std::unique_ptr<DaemonLink> daemon_ R2CC_PT_GUARDED_BY(daemon_mutex_);
  Listener listener_;
  Poller::Token daemon_token_ = 0;
  int daemon_fd_ = -1;
  uint64_t page_generation_ = 0;
  mutable Mutex page_mutex_;
  std::shared_ptr<const PageView> page_ R2CC_GUARDED_BY(page_mutex_) = std::make_shared<PageView>();
  uint64_t attach_count_ = 0;
  bool changed_ = true;
  Nanos started_ = 0;
  Nanos polled_ = 0;
  Nanos totals_reported_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_CONTROL_PLANE_H_
