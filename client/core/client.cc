#include "client/core/client.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/run_dirs.h"
#include "base/transport_reason.h"
#include "client/core/remote.h"
#include "client/core/start_hint.h"
#include "proto/pages.h"

namespace r2cc::client {
namespace {

// An action may be forwarded to another node's daemon; a person waits no longer than this.
constexpr std::chrono::seconds kCallDeadline{10};
// One attempt to connect, handshake included: half of that. A daemon that waits for a processor or for memory answers late.
constexpr int kConnectTimeoutMs = 5000;
// `ready` ends within a second, its process included.
constexpr std::chrono::milliseconds kOwnNodeDeadline{800};
constexpr std::chrono::milliseconds kSoonDeadline{200};

// gRPC distinguishes "no such socket", "nobody listens" and "not allowed" only in its text; connect(2) has error numbers.
absl::Status CheckListening(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(absl::StrCat("socket path '", socket_path, "' is ", socket_path.size(),
                                                   " bytes long: a Unix socket takes 1 to ", sizeof(address.sun_path) - 1));
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::UnavailableError(absl::StrCat("cannot make a Unix socket: ", std::strerror(errno)));
  const int error = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
  close(fd);
  switch (error) {
    case 0: return absl::OkStatus();
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat("not allowed to open ", socket_path, ": run r2ccctl as root, or as a member of the group of its directory (r2cc)"));
    case ENOENT:
      return absl::UnavailableError(
          absl::StrCat("r2ccd is not running: there is no ", socket_path, "; ", HowToStart(socket_path, HasUnit(""))));
    case ECONNREFUSED:
      return absl::UnavailableError(
          absl::StrCat("r2ccd is not running: no process listens on ", socket_path, "; ", HowToStart(socket_path, HasUnit(""))));
    // Without SOCK_NONBLOCK this would wait for it.
    case EAGAIN:
      return absl::UnavailableError(
          absl::StrCat("r2ccd on ", socket_path, " accepts no connections, because many wait already: see its log, or restart it"));
    default: return absl::UnavailableError(absl::StrCat("cannot reach r2ccd on ", socket_path, ": ", std::strerror(error)));
  }
}

// The codes of gRPC and of absl::Status are the same numbers.
absl::Status FromGrpc(const grpc::Status& status, const std::string& socket_path, std::chrono::milliseconds waited = kCallDeadline) {
  if (status.ok()) return absl::OkStatus();
  // A daemon's error about a bad configuration may have several lines.
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) return absl::InvalidArgumentError(status.error_message());
  const std::string first_line{*absl::StrSplit(status.error_message(), '\n').begin()};
  const std::string reason = TransportReason(first_line);
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(
          absl::StrCat("r2ccd on ", socket_path, " did not answer within ", waited.count() / 1000.0, " s: see its log"));
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(absl::StrCat("r2ccd on ", socket_path, " is too old for this command: update it"));
    case absl::StatusCode::kUnavailable:
      // Also the word of a daemon that cannot reach the NIC's own daemon, so its message is kept.
      return absl::UnavailableError(absl::StrCat("r2ccd on ", socket_path, ": ", reason.empty() ? "the connection broke" : reason));
    default:
      if (reason.empty()) return absl::Status(code, absl::StrCat("r2ccd on ", socket_path, " refused without a reason"));
      // A daemon's own sentence stays as it is.
      return absl::Status(code, reason == first_line ? reason : absl::StrCat("r2ccd on ", socket_path, ": ", reason));
  }
}

// gRPC would take another port where there is none, or one that is too large.
absl::Status CheckServer(const std::string& server) {
  const size_t colon = server.rfind(':');
  const bool in_brackets = colon != std::string::npos && server.find(']', colon) != std::string::npos;
  uint32_t port = 0;
  if (colon != std::string::npos && colon > 0 && !in_brackets && absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 &&
      port <= UINT16_MAX)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", server, "' is no HOST:PORT, such as node0:7460 or [fd00::1]:7460"));
}

// A daemon of 0.2.0 has its socket in the run directory.
std::string ListeningSocket(const std::string& socket_path) {
  const std::string run_dir = RunDirOf(socket_path);
  if (socket_path != ControlSocket(run_dir) || access(socket_path.c_str(), F_OK) == 0 || errno != ENOENT) return socket_path;
  const std::string old = OldControlSocket(run_dir);
  return access(old.c_str(), F_OK) == 0 ? old : socket_path;
}

// A follower of a daemon that restarts tries again each half second; gRPC would wait for up to two minutes.
grpc::ChannelArguments SoonAgain(grpc::ChannelArguments arguments) {
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return arguments;
}

void SetDeadline(grpc::ClientContext* context) { context->set_deadline(std::chrono::system_clock::now() + kCallDeadline); }

template <typename Request, typename Reply>
absl::StatusOr<Reply> Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&, Reply*), v1::Control::Stub* stub,
                           const Request& request, Reply reply, const std::string& socket_path) {
  grpc::ClientContext context;
  SetDeadline(&context);
  if (absl::Status status = FromGrpc((stub->*method)(&context, request, &reply), socket_path); !status.ok()) return status;
  return reply;
}

// Asks for one page after the other.
template <typename Request, typename Reply, typename Ask>
absl::StatusOr<Reply> Pages(Request request, Reply all, Ask ask) {
  for (bool first = true;; first = false) {
    const absl::StatusOr<Reply> page = ask(request);
    if (!page.ok()) return page.status();
    if (first)
      all = *page;
    else
      AddPage(*page, &all);
    // Names come in order: a daemon that goes back would keep us asking for ever.
    if (page->next_after() <= request.after_node()) break;
    request.set_after_node(page->next_after());
  }
  all.clear_next_after();
  return all;
}

}  // namespace

std::string SocketPath(const std::string& run_dir) { return ControlSocket(run_dir); }

Client::Client(std::string socket_path, std::unique_ptr<v1::Control::Stub> stub)
    : socket_path_(std::move(socket_path)), stub_(std::move(stub)) {}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& wanted) {
  const std::string socket_path = ListeningSocket(wanted);
  if (absl::Status status = CheckListening(socket_path); !status.ok()) return status;
  auto channel = grpc::CreateCustomChannel(absl::StrCat("unix:", socket_path), grpc::InsecureChannelCredentials(),
                                           SoonAgain(grpc::ChannelArguments()));
  return std::unique_ptr<Client>(new Client(socket_path, v1::Control::NewStub(channel)));
}

absl::StatusOr<std::unique_ptr<Client>> Client::ConnectServer(const std::string& server, const std::string& certificates,
                                                              const std::string& node) {
  if (absl::Status status = CheckServer(server); !status.ok()) return status;
  auto credentials = RemoteCredentials(certificates, node);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto channel = grpc::CreateCustomChannel(server, *credentials, SoonAgain(arguments));
  return std::unique_ptr<Client>(new Client(server, v1::Control::NewStub(channel)));
}

absl::StatusOr<v1::StatusReply> Client::GetStatus(const v1::StatusRequest& request) {
  return Pages(request, v1::StatusReply(), [this](const v1::StatusRequest& page) {
    return Call(&v1::Control::Stub::GetStatus, stub_.get(), page, v1::StatusReply(), socket_path_);
  });
}

absl::StatusOr<v1::StatusReply> Client::Health(std::chrono::milliseconds within) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + within);
  v1::StatusRequest request;
  request.set_health(true);
  request.set_nodes_max(1);  // release 0.2.0 answers with nodes
  v1::StatusReply reply;
  if (absl::Status status = FromGrpc(stub_->GetStatus(&context, request, &reply), socket_path_, within); !status.ok()) return status;
  reply.clear_nodes();
  reply.clear_next_after();
  return reply;
}

absl::StatusOr<v1::NodeView> Client::OwnNodeSoon() {
  const auto deadline = std::chrono::system_clock::now() + kOwnNodeDeadline;
  const auto status = Health(kOwnNodeDeadline);
  if (!status.ok()) return status.status();
  grpc::ClientContext context;
  context.set_deadline(deadline);
  v1::ListNicsRequest request;
  request.set_node(status->node());
  v1::ListNicsReply reply;
  if (absl::Status failed = FromGrpc(stub_->ListNics(&context, request, &reply), socket_path_, kOwnNodeDeadline); !failed.ok())
    return failed;
  for (v1::NodeView& view : *reply.mutable_nodes())
    if (view.node() == status->node()) return std::move(view);
  return absl::UnavailableError(absl::StrCat("r2ccd on ", socket_path_, " has not looked at its own NICs yet"));
}

absl::StatusOr<v1::ListNicsReply> Client::ListNicsSoon() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSoonDeadline);
  v1::ListNicsReply reply;
  if (absl::Status status = FromGrpc(stub_->ListNics(&context, v1::ListNicsRequest(), &reply), socket_path_, kSoonDeadline); !status.ok())
    return status;
  return reply;
}

absl::StatusOr<v1::ListNicsReply> Client::ListNics(const v1::ListNicsRequest& request) {
  return Pages(request, v1::ListNicsReply(), [this](const v1::ListNicsRequest& page) {
    return Call(&v1::Control::Stub::ListNics, stub_.get(), page, v1::ListNicsReply(), socket_path_);
  });
}

absl::StatusOr<v1::NicActionReply> Client::ActOnNic(const v1::NicActionRequest& request) {
  return Call(&v1::Control::Stub::ActOnNic, stub_.get(), request, v1::NicActionReply(), socket_path_);
}

absl::StatusOr<v1::ListJobsReply> Client::ListJobs(const v1::ListJobsRequest& request) {
  v1::ListJobsRequest next = request;
  v1::ListJobsReply all;
  for (bool more = true; more;) {
    const auto page = Call(&v1::Control::Stub::ListJobs, stub_.get(), next, v1::ListJobsReply(), socket_path_);
    if (!page.ok()) return page.status();
    all.mutable_jobs()->MergeFrom(page->jobs());
    if (page->has_summary()) *all.mutable_summary() = page->summary();
    all.set_release(page->release());
    next.set_skip(request.skip() + static_cast<uint32_t>(all.jobs_size()));
    more = page->more() && page->jobs_size() > 0;
  }
  return all;
}

absl::StatusOr<v1::Plan> Client::GetPlan(const v1::GetPlanRequest& request) {
  return Pages(request, v1::Plan(), [this](const v1::GetPlanRequest& page) {
    return Call(&v1::Control::Stub::GetPlan, stub_.get(), page, v1::Plan(), socket_path_);
  });
}

absl::StatusOr<v1::ExplainNicReply> Client::ExplainNic(const v1::ExplainNicRequest& request) {
  return Call(&v1::Control::Stub::ExplainNic, stub_.get(), request, v1::ExplainNicReply(), socket_path_);
}

absl::StatusOr<v1::ProbePathsReply> Client::ProbePaths(const v1::ProbePathsRequest& request) {
  return Call(&v1::Control::Stub::ProbePaths, stub_.get(), request, v1::ProbePathsReply(), socket_path_);
}

absl::StatusOr<v1::ExplainPlanReply> Client::ExplainPlan(const v1::ExplainPlanRequest& request) {
  return Pages(request, v1::ExplainPlanReply(), [this](const v1::ExplainPlanRequest& page) {
    return Call(&v1::Control::Stub::ExplainPlan, stub_.get(), page, v1::ExplainPlanReply(), socket_path_);
  });
}

absl::StatusOr<v1::ReportJobsReply> Client::ReportJobs(const v1::ReportJobsRequest& request) {
  return Call(&v1::Control::Stub::ReportJobs, stub_.get(), request, v1::ReportJobsReply(), socket_path_);
}

absl::StatusOr<v1::ForgetNodeReply> Client::ForgetNode(const v1::ForgetNodeRequest& request) {
  return Call(&v1::Control::Stub::ForgetNode, stub_.get(), request, v1::ForgetNodeReply(), socket_path_);
}

absl::StatusOr<v1::ConfigReply> Client::GetConfig(const v1::ConfigRequest& request) {
  return Call(&v1::Control::Stub::GetConfig, stub_.get(), request, v1::ConfigReply(), socket_path_);
}

absl::StatusOr<v1::ReloadReply> Client::Reload(const v1::ReloadRequest& request) {
  return Call(&v1::Control::Stub::Reload, stub_.get(), request, v1::ReloadReply(), socket_path_);
}

absl::StatusOr<v1::DisagreementReply> Client::ReportDisagreement(const v1::DisagreementRequest& request) {
  return Call(&v1::Control::Stub::ReportDisagreement, stub_.get(), request, v1::DisagreementReply(), socket_path_);
}

absl::Status Client::Events(const v1::EventsRequest& request, absl::FunctionRef<bool(const v1::Event&)> on_event) {
  grpc::ClientContext context;
  if (!request.follow()) SetDeadline(&context);
  auto stream = stub_->Events(&context, request);
  for (v1::Event event; stream->Read(&event);) {
    if (on_event(event)) continue;
    context.TryCancel();
    stream->Finish();
    return absl::OkStatus();
  }
  return FromGrpc(stream->Finish(), socket_path_);
}

}  // namespace r2cc::client
