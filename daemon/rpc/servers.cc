#include "daemon/rpc/servers.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_posix.h"

namespace r2cc::daemon {
namespace {

// What is under way has so long to end when the daemon does.
constexpr std::chrono::milliseconds kShutdownGrace(100);
// Everybody may connect: what he may do is judged by who he is.
constexpr int kControlMode = 0666;

}  // namespace

void RedirectGrpcLog() {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function([](gpr_log_func_args* args) {
    LogDebug("grpc", {{"file", args->file}, {"line", args->line}, {"message", args->message}});
  });
}

absl::StatusOr<std::unique_ptr<RpcServers>> RpcServers::Start(const Parts& parts, const std::string& socket_path, const std::string& listen,
                                                              const Credentials& credentials) {
  std::unique_ptr<RpcServers> servers(new RpcServers);
  // For all servers of this process that do not say otherwise: gRPC has no other way to it.
  grpc::EnableDefaultHealthCheckService(true);
  RETURN_IF_ERROR(servers->StartPeers(parts, listen, credentials));
  RETURN_IF_ERROR(servers->StartControl(parts, socket_path));
  return servers;
}

absl::Status RpcServers::StartPeers(const Parts& parts, const std::string& listen, const Credentials& credentials) {
  using FromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  peer_ = MakePeerService(parts.backend, parts.authenticator);
  remote_control_ = MakeControlService(parts.backend, parts.authenticator);
  grpc::ServerBuilder builder;
  SetServerOptions(&builder);
  // Who has not proved who he is gets no answer here, not even that one.
  builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.RegisterService(peer_.get());
  builder.RegisterService(remote_control_.get());
  if (parts.store != nullptr) builder.RegisterService(parts.store);
  if (credentials.tls != nullptr)
    tls_acceptor_ = builder.experimental().AddExternalConnectionAcceptor(FromFd::FROM_FD, TlsServer(credentials));
  // Without TLS also those are taken who will be refused: they hear why.
  if (credentials.insecure || credentials.tls == nullptr)
    clear_acceptor_ = builder.experimental().AddExternalConnectionAcceptor(FromFd::FROM_FD, grpc::InsecureServerCredentials());
  peer_server_ = builder.BuildAndStart();
  if (peer_server_ == nullptr) return absl::InternalError("gRPC does not start a server for peers");
  const auto to = [](grpc::experimental::ExternalConnectionAcceptor* acceptor) -> std::function<void(int)> {
    if (acceptor == nullptr) return nullptr;
    return [acceptor](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      acceptor->HandleNewConnection(&connection);
    };
  };
  ASSIGN_OR_RETURN(peer_listener_,
                   PeerListener::Start(&listen_.loop(), listen, {to(tls_acceptor_.get()), to(clear_acceptor_.get())}, parts.refusals));
  return absl::OkStatus();
}

absl::Status RpcServers::StartControl(const Parts& parts, const std::string& socket_path) {
  control_ = MakeControlService(parts.backend, parts.authenticator);
  grpc::ServerBuilder builder;
  SetServerOptions(&builder);
  builder.RegisterService(control_.get());
  control_server_ = builder.BuildAndStart();
  if (control_server_ == nullptr) return absl::InternalError("gRPC does not start a server for the control socket");
  ASSIGN_OR_RETURN(control_listener_,
                   LocalListener::Start(&listen_.loop(), socket_path, kControlMode,
                                        [server = control_server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); }));
  return absl::OkStatus();
}

void RpcServers::SetServing(bool serving) { control_server_->GetHealthCheckService()->SetServingStatus(serving); }

RpcServers::~RpcServers() {
  control_listener_.reset();
  peer_listener_.reset();
  const auto deadline = std::chrono::system_clock::now() + kShutdownGrace;
  if (control_server_ != nullptr) control_server_->Shutdown(deadline);
  if (peer_server_ != nullptr) peer_server_->Shutdown(deadline);
}

}  // namespace r2cc::daemon
