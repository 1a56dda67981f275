// Runs the gRPC services as servers: Control on a Unix socket, together with gRPC's own health service (grpc.health.v1) and reflection;
// Peer and Store for the other daemons on TCP.
#ifndef R2CC_DAEMON_RPC_SERVERS_H_
#define R2CC_DAEMON_RPC_SERVERS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "daemon/core/answer.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/channel.h"
#include "daemon/rpc/client_end.h"
#include "daemon/rpc/gate.h"
#include "daemon/rpc/local_listener.h"
#include "daemon/rpc/peer_listener.h"
#include "daemon/rpc/server_tls.h"
#include "daemon/rpc/store_service.h"
#include "daemon/rpc/unary_call.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// Both servers run until the destructor, which ends what is under way. The backend outlives it.
class RpcServers {
 public:
  // Conversations at a time. On the daemons' port with a certificate: of a node or an operator, and of all.
  static constexpr size_t kConversationsPerNodeMax = 16;
  static constexpr size_t kProvenMax = 4096;
  // There without one, where `insecure` lets them in: of an address, and of all.
  static constexpr size_t kConversationsPerAddressMax = 128;
  static constexpr size_t kUnprovenMax = 1024;
  // Streams of views: of a node, which has one, and a second one while it connects again; of an address without a certificate.
  static constexpr size_t kExchangesPerNodeMax = 16;
  static constexpr size_t kExchangesPerAddressMax = 128;
  // On the control socket: of a user, and of all users; of those who may OPERATE, root among them.
  static constexpr size_t kConversationsPerUidMax = 16;
  static constexpr size_t kUsersMax = 128;
  static constexpr size_t kConversationsPerOperatorMax = 128;
  static constexpr size_t kOperatorsMax = 256;

  // All outlive the servers.
  struct Parts {
    Backend* backend;
    const Authenticator* authenticator;
    Refusals* refusals;
    StoreService* store;  // null: this daemon serves none
  };
  // Serves Control on `socket_path` (a socket that a dead daemon left is replaced); and Peer, the store and, for those with a certificate,
  // Control on `listen`. One line that names the address if it cannot be had.
  static absl::StatusOr<std::unique_ptr<RpcServers>> Start(const Parts& parts, const std::string& socket_path, const std::string& listen,
                                                           const Credentials& credentials);
  ~RpcServers();
  RpcServers(const RpcServers&) = delete;
  RpcServers& operator=(const RpcServers&) = delete;

  // The port that was chosen, if `listen` left it open.
  int peer_port() const { return peer_listener_->port(); }
  // The control socket is at its path; makes it again, soon. Any thread.
  bool HasControlSocket() const { return control_listener_->IsAtPath(); }
  void MakeControlSocketAgain() { control_listener_->MakeAgain(); }
  // Sets the answer of grpc.health.v1 on the control socket; from the start: SERVING. Any thread.
  void SetServing(bool serving);

 private:
  RpcServers() : listen_("r2ccd-listen") {}
  absl::Status StartPeers(const Parts& parts, const std::string& listen, const Credentials& credentials);
  absl::Status StartControl(const Parts& parts, const std::string& socket_path);

  ScopedLoopThread listen_;
  std::unique_ptr<grpc::Service> control_;
  std::unique_ptr<grpc::Service> reflection_;
  std::unique_ptr<grpc::Service> remote_control_;
  std::unique_ptr<grpc::Service> peer_;
  std::unique_ptr<grpc::Server> control_server_;
  std::unique_ptr<grpc::Server> peer_server_;
  // On the loop's thread. Gone before the servers, which the conversations go to.
  std::unique_ptr<Gate> control_gate_;
  std::unique_ptr<Gate> peer_gate_;
  ServerTls server_tls_{TlsProtocol::kHttp2, "the daemons' port"};
  // Gone before the gates.
  std::unique_ptr<LocalListener> control_listener_;
  std::unique_ptr<PeerListener> peer_listener_;
};

// The services, to be put on a server.
std::unique_ptr<grpc::Service> MakeControlService(Backend* backend, const Authenticator* authenticator,
                                                  std::shared_ptr<PendingReplies> replies);
std::unique_ptr<grpc::Service> MakePeerService(Backend* backend, const Authenticator* authenticator);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_SERVERS_H_
