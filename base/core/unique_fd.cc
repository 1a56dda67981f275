#include "base/core/unique_fd.h"

#include <sys/socket.h>
#include <unistd.h>

namespace r2cc {

bool UniqueFd::Close() {
  if (fd_ < 0) return true;
  fork_guard::Remove(fd_);
  return close(std::exchange(fd_, -1)) == 0;
}

void UniqueFd::Reset() {
  if (fd_ < 0) return;
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  // A forked child may hold a copy of the descriptor: closing ours alone would end nothing.
  shutdown(fd_, SHUT_RDWR);
  Close();
}

}  // namespace r2cc
