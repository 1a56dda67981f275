// The LinkWatch over the kernel's NETLINK_ROUTE events, in the network namespace of the thread that makes it.
#ifndef R2CC_HEALTH_IO_NETLINK_LINK_WATCH_H_
#define R2CC_HEALTH_IO_NETLINK_LINK_WATCH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/netlink.h"
#include "base/event_loop.h"
#include "health/io/link_watch.h"

namespace r2cc::health {

// A link event of the kernel as a fact.
LinkFact ToLinkFact(const NetEvent& event);

// Loop thread only, except for the constructor.
class NetlinkLinkWatch final : public LinkWatch {
 public:
  // `loop` outlives the watch.
  explicit NetlinkLinkWatch(EventLoop* loop) : loop_(loop) {}
  ~NetlinkLinkWatch() override;
  NetlinkLinkWatch(const NetlinkLinkWatch&) = delete;
  NetlinkLinkWatch& operator=(const NetlinkLinkWatch&) = delete;

  // Waits for the kernel's list, at most 2 s.
  absl::Status Start(Handler handler) override;
  // Soon, not at once: calls in one turn of the loop, also from the handler, are one.
  void Refresh() override;

 private:
  absl::Status Open();
  void Close();
  void Reopen();
  void Housekeep();
  void Receive();
  void Take(const NetEvent& event, std::vector<LinkFact>* changes);

  EventLoop* const loop_;
  Handler handler_;
  std::unique_ptr<NetlinkSocket> socket_;
  TimerId housekeeping_ = 0;  // repeats a list that the kernel refused, and a socket that could not be opened
  TimerId refresh_ = 0;
  bool listing_ = false;  // between kResync and kDumpDone
  uint64_t lists_ = 0;    // complete lists that were handed on
  std::vector<LinkFact> list_;
  std::map<int, std::string> name_of_;  // by index: a renamed interface is gone under its old name
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_NETLINK_LINK_WATCH_H_
