// gRPC's server reflection (grpc.reflection.v1 and v1alpha, which are the same bytes): what a client without our .proto files asks to learn
// the service Control. gRPC's own library of it is 300 KiB.
#ifndef R2CC_DAEMON_RPC_REFLECTION_H_
#define R2CC_DAEMON_RPC_REFLECTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/unary_call.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// The ServerReflectionResponse to a ServerReflectionRequest, both as on the wire. INVALID_ARGUMENT: it is none. Pure.
absl::StatusOr<std::string> AnswerReflection(const std::string& request);

// The service, to be put on a server. It needs the role VIEW. `replies`: also of the other calls of that server. All outlive it.
std::unique_ptr<grpc::Service> MakeReflectionService(Backend* backend, const Authenticator* authenticator,
                                                     std::shared_ptr<PendingReplies> replies);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_REFLECTION_H_
