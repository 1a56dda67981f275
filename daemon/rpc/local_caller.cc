#include "daemon/rpc/local_caller.h"

#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace r2cc::daemon {
namespace {

// "NSpid:" of /proc/PID/status has a number for each pid namespace from the reader's on, and everybody may read it.
bool InPidNamespaceOfItsOwn(const std::string& status) {
  constexpr char kLine[] = "\nNSpid:";
  const size_t at = status.find(kLine);
  if (at == std::string::npos) return false;  // a kernel before 4.1
  const size_t begin = at + sizeof(kLine) - 1;
  std::istringstream numbers(status.substr(begin, status.find('\n', begin) - begin));
  int count = 0;
  for (int64_t number; numbers >> number;) ++count;
  return count > 1;
}

bool IsContained(int32_t pid) {
  if (pid <= 0) return true;  // it has no number here
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::ostringstream status;
  // One that has ended, or that this machine hides, is taken for what it says: it connected from where the kernel knows its number.
  if (!file || !(status << file.rdbuf())) return false;
  return InPidNamespaceOfItsOwn(status.str());
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
  if (IsContained(caller.pid)) {
    caller.uid = caller.gid = kOverflowId;
    return caller;
  }
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
