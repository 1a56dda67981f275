#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/config.h"
#include "daemon/rpc/servers.h"
#include "grpc/support/log.h"
#include "grpcpp/server_posix.h"

namespace r2cc::daemon {
namespace {

// What is under way has so long to end when the daemon does.
constexpr std::chrono::milliseconds kShutdownGrace(100);
constexpr int kControlMode = 0660;

// gRPC does not say why it cannot listen; the kernel does.
std::string WhyNotListen(const std::string& listen) {
  const auto address = ParseHostPort(listen, /*allow_port_zero=*/true);
  if (!address.ok()) return std::string(address.status().message());
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address->host.c_str(), std::to_string(address->port).c_str(), &hints, &found); error != 0)
    return gai_strerror(error);
  std::string why = "the reason is unknown";
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, 1) != 0) why = std::strerror(errno);
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return why;
}

}  // namespace

void RedirectGrpcLog() {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function([](gpr_log_func_args* args) {
    LogDebug("grpc", {{"file", args->file}, {"line", args->line}, {"message", args->message}});
  });
}

absl::StatusOr<std::unique_ptr<RpcServers>> RpcServers::Start(Backend* backend, const std::string& socket_path, const std::string& listen,
                                                              const Credentials& credentials, StoreService* store) {
  std::unique_ptr<RpcServers> servers(new RpcServers);
  servers->control_ = MakeControlService(backend);
  servers->peer_ = MakePeerService(backend);

  grpc::ServerBuilder peers;
  SetServerOptions(&peers);
  peers.AddListeningPort(listen, credentials.server, &servers->peer_port_);
  peers.RegisterService(servers->peer_.get());
  if (store != nullptr) peers.RegisterService(store);
  servers->peer_server_ = peers.BuildAndStart();
  if (servers->peer_server_ == nullptr || servers->peer_port_ == 0)
    return absl::UnavailableError(
        absl::StrCat("cannot listen for peers on ", listen, ": ", WhyNotListen(listen), "; set listen in the configuration"));

  grpc::ServerBuilder control;
  SetServerOptions(&control);
  control.RegisterService(servers->control_.get());
  servers->control_server_ = control.BuildAndStart();
  if (servers->control_server_ == nullptr) return absl::InternalError("gRPC does not start a server for the control socket");
  auto listener = LocalListener::Start(&servers->listen_.loop(), socket_path, kControlMode,
                                       [server = servers->control_server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); });
  if (!listener.ok()) return listener.status();
  servers->control_listener_ = *std::move(listener);
  return servers;
}

RpcServers::~RpcServers() {
  control_listener_.reset();
  const auto deadline = std::chrono::system_clock::now() + kShutdownGrace;
  if (control_server_ != nullptr) control_server_->Shutdown(deadline);
  if (peer_server_ != nullptr) peer_server_->Shutdown(deadline);
}

}  // namespace r2cc::daemon
