// Who is at the other end of a connected Unix socket.
#ifndef R2CC_DAEMON_RPC_LOCAL_CALLER_H_
#define R2CC_DAEMON_RPC_LOCAL_CALLER_H_

#include "daemon/core/caller.h"

namespace r2cc::daemon {

// What the kernel shows a daemon for an id that means nothing here.
constexpr uint32_t kOverflowId = 65534;

// By the kernel's word, as of the moment when it connected. kNobody if the kernel does not know. The uid and gids of a container are no
// word about this machine: a process in a container (daemon/io/process_origin.h) has kOverflowId and no groups. So has one that has ended
// already, or that a /proc with hidepid hides.
Caller LocalCaller(int fd);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_LOCAL_CALLER_H_
