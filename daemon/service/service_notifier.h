// Tells the service manager how the daemon is: that it serves, that its loop turns, what it does.
#ifndef R2CC_DAEMON_SERVICE_SERVICE_NOTIFIER_H_
#define R2CC_DAEMON_SERVICE_SERVICE_NOTIFIER_H_

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "daemon/service/notify_sink.h"

namespace r2cc::daemon {

// How often the status is looked at; systemd's users read it, no program waits for it.
constexpr Nanos kServiceTickInterval = kNanosPerSecond;

// How long the manager waits for a sign of life, by its words WATCHDOG_USEC and WATCHDOG_PID; 0: it does not. `usec` and `pid` may be
// null: not said. One that is meant for another process, or is no number, is none.
Nanos WatchdogTime(const char* usec, const char* pid, int64_t own_pid);

// On the core's executor: a core that does not turn feeds nobody, and the manager starts the daemon anew.
class ServiceNotifier {
 public:
  // `watchdog`: how long the manager waits for a sign of life; 0: it does not. `status`: one line for people, asked with each tick. All
  // outlive it.
  ServiceNotifier(NotifySink* sink, Executor* core, Nanos watchdog, std::function<std::string()> status);
  ~ServiceNotifier() { *alive_ = false; }
  ServiceNotifier(const ServiceNotifier&) = delete;
  ServiceNotifier& operator=(const ServiceNotifier&) = delete;

  // It serves. From now on the watchdog is fed.
  void Ready();
  // It reads its configuration again; Ready() says that it has.
  void Reloading();
  // It ends.
  void Stopping();

 private:
  void Tick();
  // As soon as the manager takes it; what says READY, RELOADING or STOPPING must not be lost.
  void Send(const std::string& state);
  void Feed();

  NotifySink* const sink_;
  Executor* const core_;
  const Nanos interval_;
  const bool watched_;
  const std::function<std::string()> status_;
  std::string unsent_;
  std::string told_;  // the last status
  bool ticks_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_SERVICE_NOTIFIER_H_
