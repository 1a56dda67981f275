#include "daemon/rpc/local_caller.h"

#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace r2cc::daemon {

Caller LocalCaller(int fd) {
  Caller caller;
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return caller;
  caller.kind = Caller::Kind::kLocal;
  caller.uid = credentials.uid;
  caller.gid = credentials.gid;
  caller.pid = credentials.pid;
  // A directory service gives a user hundreds of groups: with ERANGE the kernel says how many.
  std::vector<gid_t> groups(64);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  if (result != 0 && errno == ERANGE) {
    groups.resize(bytes / sizeof(gid_t));
    result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  }
  if (result == 0) caller.groups.assign(groups.begin(), groups.begin() + static_cast<ptrdiff_t>(bytes / sizeof(gid_t)));
  return caller;
}

}  // namespace r2cc::daemon
