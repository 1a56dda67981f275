// The control socket: takes connections itself, so that each call's caller is known by the kernel's word on the other end.
#ifndef R2CC_DAEMON_RPC_LOCAL_LISTENER_H_
#define R2CC_DAEMON_RPC_LOCAL_LISTENER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"

namespace r2cc::daemon {

// On `loop`, which outlives it.
class LocalListener {
 public:
  // Listens on the Unix socket `path`, with `mode`; a socket that a dead daemon left is replaced. `on_connection` owns the descriptor that
  // it is called with, on the loop's thread. Any thread.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(EventLoop* loop, const std::string& path, int mode,
                                                              std::function<void(int fd)> on_connection);
  // When it returns `on_connection` is not running and will not run again. Any thread but the loop's.
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

 private:
  LocalListener(EventLoop* loop, int fd, std::function<void(int fd)> on_connection)
      : loop_(loop), fd_(fd), on_connection_(std::move(on_connection)) {}
  void Watch();
  void Accept();

  EventLoop* const loop_;
  const int fd_;
  const std::function<void(int fd)> on_connection_;
  TimerId pause_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_LOCAL_LISTENER_H_
