// A caller that connects to a job's listening ports and does not belong to the job.
#ifndef R2CC_TESTS_PLUGIN_FOREIGN_CALLER_H_
#define R2CC_TESTS_PLUGIN_FOREIGN_CALLER_H_

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/link/frame.h"

namespace r2cc::plugin_test {

// The IPv4 addresses and ports at which a process listens now.
std::vector<sockaddr_in> ListenersOf(pid_t pid);
// The largest resident size that the process ever had.
size_t ResidentPeakBytes(pid_t pid);

class ForeignCaller {
 public:
  explicit ForeignCaller(const sockaddr_in& to);
  ~ForeignCaller() { Close(); }
  ForeignCaller(ForeignCaller&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ForeignCaller& operator=(ForeignCaller&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  bool connected() const { return fd_ >= 0; }
  // False if the other end has hung up.
  bool Send(std::span<const uint8_t> bytes);
  // Greets, and waits for the answer. False if the other end hangs up instead.
  bool Greet(const net::Hello& hello, net::HelloReply* reply);
  // True once the other end has hung up; what it says before is read and forgotten.
  bool AwaitHangUp(double limit_s);
  void Close();

 private:
  int fd_ = -1;
};

}  // namespace r2cc::plugin_test

#endif  // R2CC_TESTS_PLUGIN_FOREIGN_CALLER_H_
