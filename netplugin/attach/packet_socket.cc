#include "netplugin/attach/packet_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/core/fork_guard.h"

namespace r2cc::net {
namespace {

// More than any packet of ours has, so that one too many is seen and not just cut off.
constexpr size_t kFdsMax = 8;

}  // namespace

int ConnectPacketSocket(const std::string& path, std::string* error) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    *error = "the path is too long for a Unix socket";
    return -1;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    *error = std::strerror(errno);
    return -1;
  }
  // A Unix socket connects at once, or says EAGAIN if the other end's queue is full.
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    *error = std::strerror(errno);
    close(fd);
    return -1;
  }
  fork_guard::Add(fd);
  return fd;
}

void ClosePacketSocket(int fd) {
  // A copy in a forked child would keep the daemon waiting: close() alone does not tell it.
  shutdown(fd, SHUT_RDWR);
  fork_guard::Remove(fd);
  close(fd);
}

bool SendPacket(int fd, const void* data, size_t bytes) {
  return send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

ReceivedFds::~ReceivedFds() {
  for (int fd : fds_)
    if (fd >= 0) close(fd);
}

int ReceivedFds::Take(size_t i) {
  const int fd = fds_[i];
  fds_[i] = -1;
  return fd;
}

Received ReceivePacket(int fd, void* data, size_t capacity, size_t* bytes, ReceivedFds* fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)];
  iovec part{data, capacity};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Received::kNothing : Received::kEnd;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received;
      std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds->Add(received);
    }
  }
  *bytes = static_cast<size_t>(got);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return Received::kTooLong;
  return got == 0 ? Received::kEnd : Received::kPacket;
}

}  // namespace r2cc::net
