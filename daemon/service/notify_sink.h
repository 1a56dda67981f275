// The interface for notifications to the service manager: sd_notify(3).
#ifndef R2CC_DAEMON_SERVICE_NOTIFY_SINK_H_
#define R2CC_DAEMON_SERVICE_NOTIFY_SINK_H_

#include <string>

namespace r2cc::daemon {

class NotifySink {
 public:
  virtual ~NotifySink() = default;
  // `state`: NAME=VALUE, a line each. Never waits. False: it was not taken, try again later. One thread at a time.
  virtual bool Notify(const std::string& state) = 0;
  // Asks the manager to keep a copy of `fd` for the next run of the service, under a name without colons or blanks (FDSTORE=1). A manager
  // that keeps none (FileDescriptorStoreMax=0) does not report that. Never waits. False: it was not sent.
  virtual bool Keep(const std::string& name, int fd) = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_NOTIFY_SINK_H_
