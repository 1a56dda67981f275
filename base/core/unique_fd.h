// Owns a descriptor, and closes it. Forked children do not keep it, once fork_guard is installed.
#ifndef R2CC_BASE_CORE_UNIQUE_FD_H_
#define R2CC_BASE_CORE_UNIQUE_FD_H_

#include <utility>

#include "base/core/fork_guard.h"

namespace r2cc {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {
    if (fd >= 0) fork_guard::Add(fd);
  }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // False: close() failed, which is where some file systems report a full disk. The descriptor is closed all the same.
  bool Close();
  // Closes a TCP socket at once: unsent and unread data is lost, at both ends.
  void Reset();

 private:
  int fd_ = -1;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_UNIQUE_FD_H_
