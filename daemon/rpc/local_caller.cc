#include "daemon/rpc/local_caller.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/io/process_origin.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace r2cc::daemon {
namespace {

// A number that was the caller's may be another process's once the caller has ended; with Linux 6.5 that is seen.
bool HasEnded(int fd) {
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0) return errno == ESRCH || errno == EINVAL;
  pollfd end{pidfd, POLLIN, 0};
  const bool ended = poll(&end, 1, 0) != 0;
  close(pidfd);
  return ended;
}

bool IsContained(int fd, pid_t pid) {
  if (pid <= 0) return true;  // it has no number here
  static const ProcessView own = ViewProcess(0);
  return IsContained(own, ViewProcess(pid)) || HasEnded(fd);
}

}  // namespace

Caller LocalCaller(int fd) {
  Caller caller;
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return caller;
  caller.kind = Caller::Kind::kLocal;
  caller.uid = credentials.uid;
  caller.gid = credentials.gid;
  caller.pid = credentials.pid;
  if (IsContained(fd, caller.pid)) {
    caller.contained = true;
    caller.uid = caller.gid = kOverflowId;
    return caller;
  }
  caller.groups = PeerGroups(fd);
  return caller;
}

}  // namespace r2cc::daemon
