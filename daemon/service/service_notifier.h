// Reports the daemon's state to the service manager: that it serves, that its loop turns, and its status line.
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

// The time for which the manager waits for a sign of life, from WATCHDOG_USEC and WATCHDOG_PID; 0: it does not wait. `usec` and `pid` may
// be null: not set. A value that is meant for another process, or is no number, counts as none.
Nanos WatchdogTime(const char* usec, const char* pid, int64_t own_pid);

// Runs on the core's executor: a core that does not turn feeds no watchdog, and the manager starts the daemon again.
class ServiceNotifier {
 public:
  // `watchdog`: for how long the manager waits for a sign of life; 0: it does not. `status`: one line for people, requested with each tick.
  // All outlive it.
  ServiceNotifier(NotifySink* sink, Executor* core, Nanos watchdog, std::function<std::string()> status);
  ~ServiceNotifier() { *alive_ = false; }
  ServiceNotifier(const ServiceNotifier&) = delete;
  ServiceNotifier& operator=(const ServiceNotifier&) = delete;

  // It serves. From now on the watchdog is fed.
  void Ready();
  // It reads its configuration again; Ready() reports the end.
  void Reloading();
  // It ends.
  void Stopping();

 private:
  void Tick();
  // Sends as soon as the manager accepts it; READY, RELOADING and STOPPING must not be lost.
  void Send(const std::string& state);
  void Feed();

  NotifySink* const sink_;
  Executor* const core_;
  const Nanos interval_;
  const bool watched_;
  const std::function<std::string()> status_;
  std::string unsent_;
  std::string sent_status_;  // the last status
  bool ticks_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_SERVICE_NOTIFIER_H_
