// Who is at the other end of a connected Unix socket.
#ifndef R2CC_DAEMON_RPC_LOCAL_CALLER_H_
#define R2CC_DAEMON_RPC_LOCAL_CALLER_H_

#include "daemon/trust/caller.h"

namespace r2cc::daemon {

// By the kernel's word, as of the moment when it connected. kNobody if the kernel does not know.
Caller LocalCaller(int fd);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_LOCAL_CALLER_H_
