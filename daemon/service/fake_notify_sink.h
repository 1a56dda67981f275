// A fake service manager that records the notifications.
#ifndef R2CC_DAEMON_SERVICE_FAKE_NOTIFY_SINK_H_
#define R2CC_DAEMON_SERVICE_FAKE_NOTIFY_SINK_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/service/notify_sink.h"

namespace r2cc::daemon {

class FakeNotifySink final : public NotifySink {
 public:
  bool Notify(const std::string& state) override {
    if (!takes) return false;
    sent_.push_back(state);
    return true;
  }
  bool Keep(const std::string& name, int fd) override {
    if (takes) kept[name] = fd;
    return takes;
  }
  // The notifications since the last call.
  std::vector<std::string> TakeSent() { return std::exchange(sent_, {}); }

  bool takes = true;                // false: its queue is full
  std::map<std::string, int> kept;  // the caller's own descriptors, not copies

 private:
  std::vector<std::string> sent_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_FAKE_NOTIFY_SINK_H_
