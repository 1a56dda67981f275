// What the gRPC services ask of the core. The services hold no state of their own.
#ifndef R2CC_DAEMON_RPC_BACKEND_H_
#define R2CC_DAEMON_RPC_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_log.h"
#include "daemon/core/roles.h"
#include "daemon/core/speaker.h"
#include "daemon/core/view_broadcaster.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

struct MetricFacts;

// Thread-safe: every method hands the request to the core's thread. The answer is given exactly once, on the core's or a gRPC thread,
// within a bounded time, also while the core ends.
class Backend {
 public:
  virtual ~Backend() = default;
  // Whether this node lets `caller` use `role`; at once.
  virtual absl::Status Allow(const Caller& caller, Role role) const = 0;
  virtual void GetStatus(const v1::StatusRequest& request, Answer<v1::StatusReply> answer) = 0;
  virtual void ListNics(const v1::ListNicsRequest& request, Answer<v1::ListNicsReply> answer) = 0;
  virtual void ActOnNic(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer) = 0;
  virtual void ListJobs(const v1::ListJobsRequest& request, Answer<v1::ListJobsReply> answer) = 0;
  virtual void ReportJobs(const v1::ReportJobsRequest& request, const Caller& caller, Answer<v1::ReportJobsReply> answer) = 0;
  virtual void GetPlan(const v1::GetPlanRequest& request, Answer<v1::Plan> answer) = 0;
  virtual void ExplainNic(const v1::ExplainNicRequest& request, const Caller& caller, Answer<v1::ExplainNicReply> answer) = 0;
  virtual void ProbePaths(const v1::ProbePathsRequest& request, const Caller& caller, Answer<v1::ProbePathsReply> answer) = 0;
  virtual void ExplainPlan(const v1::ExplainPlanRequest& request, Answer<v1::ExplainPlanReply> answer) = 0;
  virtual void ForgetNode(const v1::ForgetNodeRequest& request, const Caller& caller, Answer<v1::ForgetNodeReply> answer) = 0;
  virtual void GetConfig(const v1::ConfigRequest& request, Answer<v1::ConfigReply> answer) = 0;
  // What the metrics say, as of now.
  virtual void GetMetrics(Answer<std::shared_ptr<const MetricFacts>> answer) = 0;
  virtual void Reload(const v1::ReloadRequest& request, const Caller& caller, Answer<v1::ReloadReply> answer) = 0;
  // A peer's view, pushed to us by `from` on its stream `stream`: NextStream() of one stream from its beginning to its end.
  // `taken`, if not null, is called on the core's thread once it was looked at and `from` may say more: whoever reads the stream reads on
  // then, so that a node that speaks without end waits for itself.
  virtual void ReceiveView(v1::NodeView view, uint64_t stream, const Caller& from, std::function<void()> taken = nullptr) = 0;
  // A peer's stream is over: nothing comes by it any more.
  virtual void EndStream(uint64_t stream) = 0;
  virtual EventLog& events() = 0;
  virtual ViewBroadcaster& broadcaster() = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_BACKEND_H_
