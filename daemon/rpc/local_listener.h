// Serves the control socket: it accepts connections itself, so that each call's caller is known from the kernel.
#ifndef R2CC_DAEMON_RPC_LOCAL_LISTENER_H_
#define R2CC_DAEMON_RPC_LOCAL_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/event_loop.h"
#include "daemon/io/file_id.h"

namespace r2cc::daemon {

// On `loop`, which outlives it.
class LocalListener {
 public:
  // Listens on the Unix socket `path`, with `mode`; a socket that a dead daemon left is replaced. `on_connection` owns the descriptor that
  // it is called with, on the loop's thread. Any thread.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Start(EventLoop* loop, const std::string& path, int mode,
                                                              std::function<void(int fd)> on_connection);
  // The socket at the path is the one that it listens on. Any thread.
  bool IsAtPath() const;
  // Makes the socket again, soon. Any thread; posted before the destructor begins.
  void MakeAgain();
  // When it returns `on_connection` is not running and will not run again. Any thread but the loop's.
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

 private:
  LocalListener(EventLoop* loop, std::string path, int mode, std::function<void(int fd)> on_connection)
      : loop_(loop), path_(std::move(path)), mode_(mode), on_connection_(std::move(on_connection)) {}
  // The descriptor of a socket that listens at the path.
  absl::StatusOr<int> Listen();
  void Watch();
  void Accept();

  EventLoop* const loop_;
  const std::string path_;
  const int mode_;
  int fd_ = -1;
  mutable absl::Mutex mutex_;
  FileId at_path_ ABSL_GUARDED_BY(mutex_);  // of the socket
  const std::function<void(int fd)> on_connection_;
  TimerId pause_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_LOCAL_LISTENER_H_
