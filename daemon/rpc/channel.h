// gRPC channels and credentials between daemons.
#ifndef R2CC_DAEMON_RPC_CHANNEL_H_
#define R2CC_DAEMON_RPC_CHANNEL_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/config.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// What both ends of a connection between daemons need; without TLS it holds the insecure credentials.
struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  std::shared_ptr<grpc::ServerCredentials> server;
  bool secure = false;
};

// Reads the files of `tls`; nothing: insecure. Mutual: both ends show a certificate of the same authority. `where` begins the messages.
absl::StatusOr<Credentials> LoadCredentials(const std::optional<TlsSpec>& tls, const std::string& where);

// A channel to one peer, which connects again for ever. With TLS the peer's certificate must name its node.
std::shared_ptr<grpc::Channel> PeerChannel(const PeerSpec& peer, const Credentials& credentials);

// A channel to one member of an etcd cluster, host:port, which connects again for ever. With TLS its certificate must name that host.
std::shared_ptr<grpc::Channel> EtcdChannel(const std::string& address, const Credentials& credentials);

// Server settings that fit PeerChannel's keep-alive, and that let no second process share the port.
void SetServerOptions(grpc::ServerBuilder* builder);

// gRPC's own log lines go to ours, at debug level: what matters is told in ours already.
void RedirectGrpcLog();

// Why a connection cannot be made, or broke: gRPC's text, cut down to what a person needs.
std::string ShortReason(const grpc::Status& status);

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CHANNEL_H_
