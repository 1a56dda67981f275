#include "base/log_output.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace r2cc {
namespace {

bool IsSocket(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

}  // namespace

LogOutput::LogOutput(int fd) : fd_(fd), is_socket_(IsSocket(fd)) {}

void LogOutput::Write(std::string_view line) {
  const MutexLock lock(mutex_);
  FlushLocked();
  if (waiting_.size() + line.size() > kWaitingBytesMax) {
    ++lost_;
    return;
  }
  waiting_ += line;
  FlushLocked();
}

void LogOutput::Flush() {
  const MutexLock lock(mutex_);
  FlushLocked();
}

uint64_t LogOutput::TakeLost() {
  const MutexLock lock(mutex_);
  return waiting_.empty() ? std::exchange(lost_, 0) : 0;
}

void LogOutput::FlushLocked() {
  size_t taken = 0;
  while (taken < waiting_.size()) {
    const size_t more = WriteSome(std::string_view(waiting_).substr(taken));
    if (more == 0) break;
    taken += more;
  }
  waiting_.erase(0, taken);
}

size_t LogOutput::WriteSome(std::string_view bytes) const {
  // A pipe or a terminal that poll() calls ready takes so much without waiting: pipe(7).
  const std::string_view part = bytes.substr(0, PIPE_BUF);
  for (;;) {
    if (!is_socket_) {
      pollfd ready{fd_, POLLOUT, 0};
      if (poll(&ready, 1, 0) == 0) return 0;
    }
    const ssize_t taken =
        is_socket_ ? send(fd_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL) : write(fd_, part.data(), part.size());
    if (taken > 0) return static_cast<size_t>(taken);
    if (errno == EAGAIN || errno == ENOBUFS) return 0;
    // Nobody will ever read it: there is nothing to wait for.
    if (errno != EINTR) return bytes.size();
  }
}

}  // namespace r2cc
