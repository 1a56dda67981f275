// A LinkWatch over a table that a test changes. One thread.
#ifndef R2CC_HEALTH_IO_FAKE_LINK_WATCH_H_
#define R2CC_HEALTH_IO_FAKE_LINK_WATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "health/io/link_watch.h"

namespace r2cc::health {

class FakeLinkWatch final : public LinkWatch {
 public:
  absl::Status Start(Handler handler) override {
    if (!start_status_.ok()) return start_status_;
    handler_ = std::move(handler);
    Refresh();
    return absl::OkStatus();
  }

  void Refresh() override {
    ++refreshes_;
    std::vector<LinkFact> all;
    for (const auto& [name, fact] : facts_) all.push_back(fact);
    if (handler_) handler_(all, true);
  }

  // Adds or changes an interface and notifies the handler.
  void Set(const std::string& interface, bool up, const std::string& mac = "") {
    LinkFact& fact = facts_[interface];
    if (fact.ifindex == 0) fact.ifindex = ++last_ifindex_;
    fact.interface = interface;
    fact.up = up;
    if (!mac.empty()) fact.mac = mac;
    if (handler_ && !lossy_) handler_({fact}, false);
  }

  void SetMtu(const std::string& interface, uint32_t mtu) {
    LinkFact& fact = facts_.at(interface);
    fact.mtu = mtu;
    if (handler_ && !lossy_) handler_({fact}, false);
  }

  void Remove(const std::string& interface) {
    const auto found = facts_.find(interface);
    if (found == facts_.end()) return;
    LinkFact gone = found->second;
    facts_.erase(found);
    gone.present = false;
    gone.up = false;
    if (handler_ && !lossy_) handler_({gone}, false);
  }

  // While set, changes are not reported, as when the kernel's queue overran. Refresh reports all.
  void set_lossy(bool lossy) { lossy_ = lossy; }
  void set_start_status(absl::Status status) { start_status_ = std::move(status); }
  int refreshes() const { return refreshes_; }

 private:
  std::map<std::string, LinkFact> facts_;
  Handler handler_;
  absl::Status start_status_;
  bool lossy_ = false;
  int last_ifindex_ = 0;
  int refreshes_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FAKE_LINK_WATCH_H_
