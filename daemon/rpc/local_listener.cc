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

constexpr int kBacklog = 128;
// After a connection could not be taken, for want of descriptors mostly: they come back as others leave.
constexpr Nanos kPause = 100 * kNanosPerMs;

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Start(EventLoop* loop, const std::string& path, int mode,
                                                                    std::function<void(int fd)> on_connection) {
  const auto failed = [&](const char* what) { return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path)); };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", path, ": a Unix socket's path has at most ", sizeof(address.sun_path) - 1, " bytes"));
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("make a socket for");
  std::unique_ptr<LocalListener> listener(new LocalListener(loop, fd, std::move(on_connection)));
  unlink(path.c_str());  // of a daemon that died: the lock file says that no other lives
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return failed("listen on");
  if (chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) return failed("set the mode of");
  if (listen(fd, kBacklog) != 0) return failed("listen on");
  loop->RunAndWait([raw = listener.get()] { raw->Watch(); });
  return listener;
}

LocalListener::~LocalListener() {
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
  for (;;) {
    const int connection = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      on_connection_(connection);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    LogWarning("the control socket takes no connection for a moment", {{"reason", std::strerror(errno)}});
    loop_->RemoveFd(fd_);
    pause_ = loop_->RunAfter(kPause, [this] { Watch(); });
    return;
  }
}

}  // namespace r2cc::daemon
