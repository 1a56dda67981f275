#include "tests/control/plain_comm.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "tests/control/bug.h"

namespace r2cc::control {
namespace {

using abi::Result;

constexpr uint64_t kMagic = 0x6E69616C50434332;
constexpr uint64_t kHeaderBytes = sizeof(uint64_t);
constexpr int kNoSocket = 0;  // in a handle: zeroed memory means that connect has not begun
constexpr int64_t kHeldPollsMax = 5000;

// A socket bound to the rail, so that traffic leaves by it and by nothing else. Without the right to bind to a device the address has to
// do.
int RailSocket(const Rail& rail) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (!rail.interface.empty()) (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, rail.interface.c_str(), rail.interface.size() + 1);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&rail.address), sizeof(rail.address)) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

Result SystemError(const std::string& what, std::string* error) {
  *error = what + ": " + strerror(errno);
  return Result::kSystemError;
}

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

PlainComm::~PlainComm() { close(fd_); }

ListenComm::~ListenComm() { close(fd); }

Request* PlainComm::Post(void* data, uint64_t bytes) {
  for (Request& request : requests_) {
    if (request.comm != nullptr) continue;
    request = {this, static_cast<uint8_t*>(data), bytes, 0, bytes, false, false};
    queue_.push_back(&request);
    if (kBug == Bug::kSwap && sends_ && queue_.size() >= 2) {
      Request* before = queue_[queue_.size() - 2];
      if (before->moved == 0 && before->bytes == bytes && (messages_ + static_cast<int64_t>(queue_.size()) - 1) % 8 == 5)
        std::swap(before->data, request.data);
    }
    return &request;
  }
  return nullptr;
}

Result PlainComm::Pump() {
  if (!error_.empty()) return Result::kRemoteError;
  if (HoldsBack()) return Result::kSuccess;
  return sends_ ? PumpSend() : PumpReceive();
}

// Only with a planted bug: the swap needs a second message in the queue, and silence is silence.
bool PlainComm::HoldsBack() {
  if (kBug == Bug::kStopDelivery && sends_) return messages_ >= kHealthyMessages;
  if (kBug != Bug::kSwap || !sends_ || messages_ % 8 != 4 || queue_.size() != 1) return false;
  return ++held_polls_ < kHeldPollsMax;
}

// Only with a planted bug, and only if a message behind it will make somebody call again to move the rest.
bool PlainComm::DoneTooEarly(const Request* request) const {
  return kBug == Bug::kEarlyDone && sends_ && error_.empty() && queue_.size() >= 2 && queue_.front() == request;
}

Result PlainComm::PumpSend() {
  while (!queue_.empty()) {
    Request* request = queue_.front();
    iovec parts[2];
    int count = 0;
    if (request->moved < kHeaderBytes)
      parts[count++] = {reinterpret_cast<uint8_t*>(&request->header) + request->moved, kHeaderBytes - request->moved};
    const uint64_t at = request->moved > kHeaderBytes ? request->moved - kHeaderBytes : 0;
    if (at < request->bytes) parts[count++] = {request->data + at, request->bytes - at};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t n = sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Result::kSuccess;
    if (n < 0) return Broken("send", errno);
    request->moved += n;
    if (request->moved == kHeaderBytes + request->bytes) Finish();
  }
  return Result::kSuccess;
}

Result PlainComm::PumpReceive() {
  while (!queue_.empty()) {
    Request* request = queue_.front();
    const bool in_header = request->moved < kHeaderBytes;
    uint8_t* to =
        in_header ? reinterpret_cast<uint8_t*>(&request->header) + request->moved : request->data + (request->moved - kHeaderBytes);
    const uint64_t want = in_header ? kHeaderBytes - request->moved : kHeaderBytes + request->header - request->moved;
    const ssize_t n = recv(fd_, to, want, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Result::kSuccess;
    if (n < 0) return Broken("recv", errno);
    if (n == 0) return Broken("recv", ECONNRESET);
    request->moved += n;
    if (request->moved < kHeaderBytes) continue;
    if (in_header && request->header > request->bytes) {
      error_ = "a message of " + std::to_string(request->header) + " bytes does not fit its buffer of " + std::to_string(request->bytes);
      return Result::kInvalidUsage;
    }
    if (request->moved < kHeaderBytes + request->header) continue;
    request->bytes = request->header;
    Finish();
    if (kBug == Bug::kError && messages_ >= kHealthyMessages) return Broken("recv", ENETDOWN);
  }
  return Result::kSuccess;
}

void PlainComm::Finish() {
  Request* request = queue_.front();
  queue_.pop_front();
  request->finished = true;
  ++messages_;
  held_polls_ = 0;
  if (kBug == Bug::kLateWrite && !sends_ && request->bytes > 0) {
    if (messages_ > kHealthyMessages && recent_[2] != nullptr) recent_[2][0] ^= 1;
    recent_ = {request->data, recent_[0], recent_[1]};
  }
  if (request->reported) request->comm = nullptr;
}

Result PlainComm::Broken(const char* call, int error) {
  error_ = std::string(call) + ": " + strerror(error);
  return Result::kRemoteError;
}

Result PlainComm::Test(Request* request, int* done, int* size) {
  *done = 0;
  const Result result = Pump();
  if (!request->finished && !DoneTooEarly(request)) return result;
  *done = 1;
  if (size != nullptr) *size = static_cast<int>(request->bytes);
  request->reported = true;
  if (request->finished) request->comm = nullptr;
  return Result::kSuccess;
}

Result Listen(const Rail& rail, Handle* handle, ListenComm** comm, std::string* error) {
  const int fd = RailSocket(rail);
  socklen_t length = sizeof(handle->address);
  memset(handle, 0, abi::kNetHandleBytesMax);
  handle->magic = kMagic;
  if (fd < 0 || listen(fd, 128) != 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&handle->address), &length) != 0) {
    const Result result = SystemError("listen on rail " + rail.name, error);
    if (fd >= 0) close(fd);
    return result;
  }
  *comm = new ListenComm(fd);
  return Result::kSuccess;
}

Result Connect(const Rail& rail, Handle* handle, PlainComm** comm, std::string* error) {
  *comm = nullptr;
  if (handle->magic != kMagic) {
    *error = "connect: this handle is not from the plain plugin";
    return Result::kInvalidArgument;
  }
  if (handle->connecting_fd == kNoSocket) {
    const int fd = RailSocket(rail);
    if (fd < 0) return SystemError("connect from rail " + rail.name, error);
    NoDelay(fd);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&handle->address), sizeof(handle->address)) != 0 && errno != EINPROGRESS) {
      const Result result = SystemError("connect from rail " + rail.name, error);
      close(fd);
      return result;
    }
    handle->connecting_fd = fd;
  }
  pollfd writable{handle->connecting_fd, POLLOUT, 0};
  if (poll(&writable, 1, 0) <= 0) return Result::kSuccess;
  const int fd = std::exchange(handle->connecting_fd, kNoSocket);
  int failure = 0;
  socklen_t length = sizeof(failure);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length);
  if (failure != 0) {
    close(fd);
    errno = failure;
    (void)SystemError("connect from rail " + rail.name, error);
    return Result::kRemoteError;
  }
  *comm = new PlainComm(fd, true);
  return Result::kSuccess;
}

Result Accept(ListenComm* listener, PlainComm** comm, std::string* error) {
  *comm = nullptr;
  const int fd = accept4(listener->fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return Result::kSuccess;
  if (fd < 0) return SystemError("accept", error);
  NoDelay(fd);
  *comm = new PlainComm(fd, false);
  return Result::kSuccess;
}

}  // namespace r2cc::control
