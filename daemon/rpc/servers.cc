#include "daemon/rpc/servers.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "daemon/rpc/local_caller.h"
#include "daemon/rpc/reflection.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_posix.h"

namespace r2cc::daemon {
namespace {

// The time that calls under way have to end when the daemon ends.
constexpr std::chrono::milliseconds kShutdownGrace(100);
// Everybody may connect: the caller's identity decides what it may do.
constexpr int kControlMode = 0666;

// A node's view with all its pairs, or its signed value in the store, has some 30 KiB.
constexpr Http2Bounds kPeerBounds = {
    .message_bytes_max = 256 << 10, .pending_bytes_max = 512 << 10, .share_pending_bytes_max = 1 << 20, .streams_max = 64};
// Requests of people have some hundred bytes.
constexpr Http2Bounds kControlBounds = {
    .message_bytes_max = 16 << 10, .pending_bytes_max = 16 << 10, .share_pending_bytes_max = 64 << 10, .streams_max = 16};

// An exchange, a watch, puts and forwarded requests go over one or two connections; there are more while certificates are replaced.
Gate::Admission PeerAdmission(const Caller& caller) {
  if (caller.kind != Caller::Kind::kNobody)
    return {.share = absl::StrCat(caller.kind == Caller::Kind::kNode ? "node " : "operator ", caller.name),
            .share_max = RpcServers::kConversationsPerNodeMax,
            .group = "nodes and operators",
            .group_max = RpcServers::kProvenMax,
            .streams_per_second = 400,
            .streams_burst = 1000};
  return {.share = caller.address.substr(0, caller.address.rfind(':')),
          .share_max = RpcServers::kConversationsPerAddressMax,
          .group = "callers without a certificate",
          .group_max = RpcServers::kUnprovenMax,
          .streams_per_second = 400,
          .streams_burst = 1000};
}

// `operates`: it has places of its own, so that others leave room for it.
Gate::Admission LocalAdmission(const Caller& caller, bool operates) {
  return {.share = caller.contained ? std::string("processes of containers") : absl::StrCat("uid ", caller.uid),
          .share_max = operates ? RpcServers::kConversationsPerOperatorMax : RpcServers::kConversationsPerUidMax,
          .group = operates ? "operators" : "users",
          .group_max = operates ? RpcServers::kOperatorsMax : RpcServers::kUsersMax,
          .streams_per_second = operates ? 1000 : 100,
          .streams_burst = operates ? 2000 : 300,
          .reserved = caller.uid == 0};
}

}  // namespace

void RedirectGrpcLog() {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function([](gpr_log_func_args* args) {
    LogDebug("grpc", {{"file", args->file}, {"line", args->line}, {"text", args->message}});
  });
}

absl::StatusOr<std::unique_ptr<RpcServers>> RpcServers::Start(const Parts& parts, const std::string& socket_path, const std::string& listen,
                                                              const Credentials& credentials) {
  std::unique_ptr<RpcServers> servers(new RpcServers);
  // For all servers of this process without a setting of their own: gRPC has no other way to it.
  grpc::EnableDefaultHealthCheckService(true);
  RETURN_IF_ERROR(servers->StartPeers(parts, listen, credentials));
  RETURN_IF_ERROR(servers->StartControl(parts, socket_path));
  return servers;
}

absl::Status RpcServers::StartPeers(const Parts& parts, const std::string& listen, const Credentials& credentials) {
  peer_ = MakePeerService(parts.backend, parts.authenticator);
  remote_control_ = MakeControlService(parts.backend, parts.authenticator, std::make_shared<PendingReplies>());
  grpc::ServerBuilder builder;
  SetServerOptions(&builder, kPeerBounds);
  // An unauthenticated caller gets no answer here, not even that one.
  builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.RegisterService(peer_.get());
  builder.RegisterService(remote_control_.get());
  if (parts.store != nullptr) builder.RegisterService(parts.store);
  peer_server_ = builder.BuildAndStart();
  if (peer_server_ == nullptr) return absl::InternalError("gRPC does not start a server for peers");
  peer_gate_ =
      std::make_unique<Gate>(Gate::Parts{&listen_.loop(), parts.authenticator->origins(), parts.refusals, "peers", kPeerBounds,
                                         [server = peer_server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); },
                                         [authenticator = parts.authenticator](const Origin& origin) -> absl::StatusOr<Gate::Admission> {
                                           ASSIGN_OR_RETURN(const Caller caller, authenticator->Judge(origin, "to connect"));
                                           return PeerAdmission(caller);
                                         }});
  PeerListener::Takers takers;
  if (credentials.tls != nullptr)
    takers.tls = [this, files = credentials.tls](int fd, const std::string& address) {
      Caller caller;
      caller.address = address;
      peer_gate_->Take(MakeTlsEnd(fd, server_tls_.Get(files.get())), std::move(caller));
    };
  // Without TLS also callers that will be refused are taken: they get the reason.
  if (credentials.insecure || credentials.tls == nullptr)
    takers.clear = [this](int fd, const std::string& address) {
      Caller caller;
      caller.address = address;
      peer_gate_->Take(std::make_unique<ClientEnd>(fd), std::move(caller));
    };
  ASSIGN_OR_RETURN(peer_listener_, PeerListener::Start(&listen_.loop(), listen, std::move(takers), parts.refusals));
  return absl::OkStatus();
}

absl::Status RpcServers::StartControl(const Parts& parts, const std::string& socket_path) {
  const auto replies = std::make_shared<PendingReplies>();
  control_ = MakeControlService(parts.backend, parts.authenticator, replies);
  reflection_ = MakeReflectionService(parts.backend, parts.authenticator, replies);
  grpc::ServerBuilder builder;
  SetServerOptions(&builder, kControlBounds);
  builder.RegisterService(control_.get());
  builder.RegisterService(reflection_.get());
  control_server_ = builder.BuildAndStart();
  if (control_server_ == nullptr) return absl::InternalError("gRPC does not start a server for the control socket");
  control_gate_ =
      std::make_unique<Gate>(Gate::Parts{&listen_.loop(), parts.authenticator->origins(), parts.refusals, "control", kControlBounds,
                                         [server = control_server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); },
                                         [backend = parts.backend](const Origin& origin) -> absl::StatusOr<Gate::Admission> {
                                           return LocalAdmission(origin.caller, backend->Allow(origin.caller, Role::kOperate).ok());
                                         }});
  ASSIGN_OR_RETURN(control_listener_, LocalListener::Start(&listen_.loop(), socket_path, kControlMode, [this](int fd) {
                     control_gate_->Take(std::make_unique<ClientEnd>(fd), LocalCaller(fd));
                   }));
  return absl::OkStatus();
}

void RpcServers::SetServing(bool serving) { control_server_->GetHealthCheckService()->SetServingStatus(serving); }

RpcServers::~RpcServers() {
  control_listener_.reset();
  peer_listener_.reset();
  listen_.loop().RunAndWait([this] {
    control_gate_.reset();
    peer_gate_.reset();
  });
  const auto deadline = std::chrono::system_clock::now() + kShutdownGrace;
  if (control_server_ != nullptr) control_server_->Shutdown(deadline);
  if (peer_server_ != nullptr) peer_server_->Shutdown(deadline);
}

}  // namespace r2cc::daemon
