#include "daemon/rpc/local_listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace r2cc::daemon {
namespace {

// gRPC's client takes a full queue of a Unix socket for an error, and does not wait for room. Measured on a busy machine: with 128, root's
// request failed in one of eight tests while another user made 250 connections at once.
constexpr int kBacklog = 1024;
// A client that connects without end does not keep the thread from those that are connected.
constexpr int kAcceptsPerTurn = 16;
// After a connection could not be taken, for want of descriptors mostly: they come back as others leave.
constexpr Nanos kPause = 100 * kNanosPerMs;

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Start(EventLoop* loop, const std::string& path, int mode,
                                                                    std::function<void(int fd)> on_connection) {
  std::unique_ptr<LocalListener> listener(new LocalListener(loop, path, mode, std::move(on_connection)));
  const absl::StatusOr<int> fd = listener->Listen();
  if (!fd.ok()) return fd.status();
  listener->fd_ = *fd;
  loop->RunAndWait([raw = listener.get()] { raw->Watch(); });
  return listener;
}

absl::StatusOr<int> LocalListener::Listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", path_, ": a Unix socket's path has at most ", sizeof(address.sun_path) - 1, " bytes"));
  std::memcpy(address.sun_path, path_.data(), path_.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto failed = [&](const char* what) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path_));
  };
  if (fd < 0) return failed("make a socket for");
  unlink(path_.c_str());  // of a daemon that died: the lock file shows that no other one runs
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return failed("listen on");
  if (chmod(path_.c_str(), static_cast<mode_t>(mode_)) != 0) return failed("set the mode of");
  if (listen(fd, kBacklog) != 0) return failed("listen on");
  absl::MutexLock lock(&mutex_);
  at_path_ = FileIdAt(path_);
  return fd;
}

bool LocalListener::IsAtPath() const {
  absl::MutexLock lock(&mutex_);
  return FileIdAt(path_) == at_path_;
}

void LocalListener::MakeAgain() {
  loop_->Post([this] {
    const absl::StatusOr<int> fd = Listen();
    if (!fd.ok()) return LogWarning("the control socket cannot be made again", {{"reason", std::string(fd.status().message())}});
    if (pause_ != 0)
      loop_->Cancel(pause_);
    else
      loop_->RemoveFd(fd_);
    close(std::exchange(fd_, *fd));
    Watch();
  });
}

LocalListener::~LocalListener() {
  if (fd_ < 0) return;
  loop_->RunAndWait([this] {
    if (pause_ != 0) loop_->Cancel(pause_);
    loop_->RemoveFd(fd_);
  });
  close(fd_);
}

void LocalListener::Watch() {
  pause_ = 0;
  (void)loop_->AddFd(fd_, EPOLLIN, [this](uint32_t) { Accept(); });
}

void LocalListener::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int connection = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      on_connection_(connection);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    LogWarning("the control socket accepts no connection for a moment", {{"reason", std::strerror(errno)}});
    loop_->RemoveFd(fd_);
    pause_ = loop_->RunAfter(kPause, [this] { Watch(); });
    return;
  }
}

}  // namespace r2cc::daemon
