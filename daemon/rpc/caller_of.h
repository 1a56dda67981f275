// Who is at the other end of a gRPC call.
#ifndef R2CC_DAEMON_RPC_CALLER_OF_H_
#define R2CC_DAEMON_RPC_CALLER_OF_H_

#include "daemon/trust/caller.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// While the call lives: before it is finished.
Caller CallerOf(const grpc::ServerContextBase& context);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CALLER_OF_H_
