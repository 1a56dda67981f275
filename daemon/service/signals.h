// The signals that a daemon obeys, as events of its loop.
#ifndef R2CC_DAEMON_SERVICE_SIGNALS_H_
#define R2CC_DAEMON_SERVICE_SIGNALS_H_

#include <signal.h>

#include <functional>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "daemon/core/caller.h"

namespace r2cc::daemon {

// Ends the loop at SIGTERM or SIGINT, and has the configuration read again at SIGHUP.
class Signals {
 public:
  // Before any thread is made: all of them inherit the mask, so that signals reach only the loop.
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // `reload` is called with the sender of the signal.
  absl::Status Follow(EventLoop* loop, std::function<void(const Caller&)> reload);

 private:
  sigset_t set_;
  int fd_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_SIGNALS_H_
