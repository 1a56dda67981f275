// Identifies the process at the other end of a connected Unix socket.
#ifndef R2CC_DAEMON_RPC_LOCAL_CALLER_H_
#define R2CC_DAEMON_RPC_LOCAL_CALLER_H_

#include "daemon/core/caller.h"

namespace r2cc::daemon {

// The id that the kernel shows in place of one that has no meaning here.
constexpr uint32_t kOverflowId = 65534;

// From the kernel, as of the moment of the connection. kNobody if the kernel does not know. The uid and gids of a container prove nothing
// about this machine: a process in a container (daemon/io/process_origin.h) has kOverflowId and no groups. So has one that has ended
// already, or that a /proc with hidepid hides.
Caller LocalCaller(int fd);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_LOCAL_CALLER_H_
