// A daemon's Control service as absl::Status calls over its Unix socket, or from afar with a certificate: what r2ccctl and tests of the
// daemon use.
#ifndef R2CC_CLIENT_CORE_CLIENT_H_
#define R2CC_CLIENT_CORE_CLIENT_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::client {

// r2ccd's --run_dir by default.
inline constexpr char kRunDir[] = "/run/r2cc";

// The control socket of r2ccd with this --run_dir.
std::string SocketPath(const std::string& run_dir);

// Calls one daemon. Every call blocks: at most kCallDeadline for each part of its answer, except Events with follow. Answers are whole:
// long ones are requested part by part. A failure is one line for a person: the daemon's own message if it refused, otherwise the socket
// and what to do. Thread-safe.
class Client {
 public:
  // Fails at once, with the way out, where nobody listens on `socket_path`.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& socket_path);

  // The daemon at `server`, host:port, over TLS: `certificates` is a directory with operator.crt and operator.key, or node.crt and
  // node.key, and ca.crt. Does not wait for an answer. `node`: the node that its certificate must name; empty: any node.
  static absl::StatusOr<std::unique_ptr<Client>> ConnectServer(const std::string& server, const std::string& certificates,
                                                               const std::string& node = "");

  absl::StatusOr<v1::StatusReply> GetStatus(const v1::StatusRequest& request);
  // A status without nodes, from a daemon whose core answers in time.
  absl::StatusOr<v1::StatusReply> Health(std::chrono::milliseconds within);
  // The daemon's view of its own node, within 800 ms.
  absl::StatusOr<v1::NodeView> OwnNodeSoon();
  // Only the first part, from a daemon that answers within a fifth of a second: a person waits at the tab key.
  absl::StatusOr<v1::ListNicsReply> ListNicsSoon();
  absl::StatusOr<v1::ListNicsReply> ListNics(const v1::ListNicsRequest& request);
  absl::StatusOr<v1::NicActionReply> ActOnNic(const v1::NicActionRequest& request);
  absl::StatusOr<v1::ListJobsReply> ListJobs(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::Plan> GetPlan(const v1::GetPlanRequest& request);
  absl::StatusOr<v1::ExplainNicReply> ExplainNic(const v1::ExplainNicRequest& request);
  absl::StatusOr<v1::ProbePathsReply> ProbePaths(const v1::ProbePathsRequest& request);
  absl::StatusOr<v1::ExplainPlanReply> ExplainPlan(const v1::ExplainPlanRequest& request);
  absl::StatusOr<v1::ReportJobsReply> ReportJobs(const v1::ReportJobsRequest& request);
  absl::StatusOr<v1::ForgetNodeReply> ForgetNode(const v1::ForgetNodeRequest& request);
  absl::StatusOr<v1::ConfigReply> GetConfig(const v1::ConfigRequest& request);
  absl::StatusOr<v1::ReloadReply> Reload(const v1::ReloadRequest& request);
  absl::StatusOr<v1::DisagreementReply> ReportDisagreement(const v1::DisagreementRequest& request);
  // Calls `on_event` for each event in order until the daemon ends the stream or `on_event` returns false (OK both).
  absl::Status Events(const v1::EventsRequest& request, absl::FunctionRef<bool(const v1::Event&)> on_event);

 private:
  Client(std::string socket_path, std::unique_ptr<v1::Control::Stub> stub);

  const std::string socket_path_;  // or host:port
  const std::unique_ptr<v1::Control::Stub> stub_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_CLIENT_H_
