#include "daemon/rpc/caller_of.h"

#include <grp.h>
#include <sys/socket.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace r2cc::daemon {
namespace {

// The kernel's word on the process behind a connected Unix socket.
Caller LocalCaller(int fd) {
  Caller caller;
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return caller;
  caller.kind = Caller::Kind::kLocal;
  caller.uid = credentials.uid;
  caller.gid = credentials.gid;
  caller.pid = credentials.pid;
  gid_t groups[256];
  socklen_t bytes = sizeof(groups);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0) caller.groups.assign(groups, groups + bytes / sizeof(gid_t));
  return caller;
}

// gRPC's "ipv4:10.0.0.1:5", "ipv6:%5B::1%5D:5" as people write it.
std::string PlainAddress(const std::string& peer) {
  absl::string_view text = peer;
  if (!absl::ConsumePrefix(&text, "ipv4:")) absl::ConsumePrefix(&text, "ipv6:");
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const absl::string_view code = text.substr(i, 3);
    if (code == "%5B" || code == "%5D") {
      plain.push_back(code == "%5B" ? '[' : ']');
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

}  // namespace

Caller CallerOf(const grpc::ServerContextBase& context) {
  const std::string peer = context.peer();
  // A connection that ControlListener accepted is named after its descriptor, which stays this connection's as long as a call of it lives:
  // gRPC closes it with the transport, and the transport ends with its last call.
  absl::string_view number = peer;
  int fd = -1;
  if (absl::ConsumePrefix(&number, "fd:") && absl::SimpleAtoi(number, &fd)) return LocalCaller(fd);
  Caller caller;
  caller.address = PlainAddress(peer);
  return caller;
}

}  // namespace r2cc::daemon
