// Identifies a caller of this daemon, as far as it is proven: by the kernel for a local socket, by a certificate for TCP.
#ifndef R2CC_DAEMON_CORE_CALLER_H_
#define R2CC_DAEMON_CORE_CALLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

struct Caller {
  enum class Kind {
    kNobody,    // nothing is known of it; everything is refused unless `insecure: true` is set
    kLocal,     // a process of this machine: the kernel states uid, gid and pid
    kNode,      // the daemon of node `name`
    kOperator,  // the person whom a certificate calls `name`
  };
  Kind kind = Kind::kNobody;
  std::string name;     // of a node or an operator
  std::string address;  // where it calls from, host:port; empty for a local caller
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;  // in addition to gid
  int32_t pid = 0;
  bool contained = false;  // its ids are a container's, and are left out here
  // The node whose daemon forwards the request and states all of the above; empty: the caller asks this daemon directly. A forwarded
  // request is never forwarded again.
  std::string via;
  // False: `via` is only the name that the forwarding daemon sent, because there is no TLS.
  bool via_proven = false;

  bool forwarded() const { return !via.empty(); }
};

// "uid 1000 (pid 4711)", "operator alice at 10.9.0.7:41234", "uid 0 (pid 12) on n1": for logs, events and the audit.
std::string Describe(const Caller& caller);

// The name under which the caller is counted where each has a share: a user, the node or operator of a certificate, an address. For a
// forwarded request: the node that forwards it.
std::string ShareOf(const Caller& caller);

// For a request that is forwarded by `node`, this one.
v1::Asker ToAsker(const Caller& caller, const std::string& node);

// The caller of a forwarded request, as `from`, another daemon, states it. Without TLS the origin is only what that daemon sent.
Caller FromAsker(const v1::Asker& asker, const Caller& from);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_CALLER_H_
