#include "daemon/service/notify_socket.h"

#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace r2cc::daemon {

absl::StatusOr<std::unique_ptr<NotifySocket>> NotifySocket::Open(const std::string& address) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.size() < 2 || address.size() >= sizeof(to.sun_path) || (address.front() != '/' && address.front() != '@'))
    return absl::InvalidArgumentError(absl::StrCat("NOTIFY_SOCKET '", address, "' is neither an absolute path nor @NAME"));
  std::memcpy(to.sun_path, address.data(), address.size());
  if (address.front() == '@') to.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "no socket for NOTIFY_SOCKET");
  // An abstract name has no end but its length.
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  return absl::WrapUnique(new NotifySocket(fd, to, length));
}

NotifySocket::~NotifySocket() { close(fd_); }

bool NotifySocket::Notify(const std::string& state) {
  return sendto(fd_, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address_), length_) ==
         static_cast<ssize_t>(state.size());
}

bool NotifySocket::Keep(const std::string& name, int fd) {
  std::string state = absl::StrCat("FDSTORE=1\nFDNAME=", name);
  iovec part{state.data(), state.size()};
  sockaddr_un to = address_;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = length_;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(fd_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(state.size());
}

}  // namespace r2cc::daemon
