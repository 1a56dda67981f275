// A descriptor that closes itself.
#ifndef R2CC_CLIENT_DOCTOR_SCOPED_FD_H_
#define R2CC_CLIENT_DOCTOR_SCOPED_FD_H_

#include <unistd.h>

namespace r2cc::client {

class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ~ScopedFd() {
    if (fd_ >= 0) close(fd_);
  }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  const int fd_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_SCOPED_FD_H_
