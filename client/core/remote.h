// Makes the credentials with which r2ccctl and a daemon on another machine authenticate each other.
#ifndef R2CC_CLIENT_CORE_REMOTE_H_
#define R2CC_CLIENT_CORE_REMOTE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::client {

// From `directory`: operator.crt and operator.key, or else node.crt and node.key, and ca.crt. The daemon must show the certificate of a
// node of that authority: of `node`, or of any if that is empty.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> RemoteCredentials(const std::string& directory, const std::string& node);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_REMOTE_H_
