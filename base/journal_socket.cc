#include "base/journal_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace r2cc {

std::unique_ptr<JournalSocket> JournalSocket::Open(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path) || access(path.c_str(), W_OK) != 0) return nullptr;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? nullptr : std::unique_ptr<JournalSocket>(new JournalSocket(fd, path));
}

JournalSocket::~JournalSocket() { close(fd_); }

// Not connected: a journal that is started again has another socket at the path. Nothing waits for a journal that is stuck.
bool JournalSocket::Send(const std::string& entry) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  for (;;) {
    if (sendto(fd_, entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
               sizeof(address)) >= 0)
      return true;
    if (errno != EINTR) return false;
  }
}

}  // namespace r2cc
