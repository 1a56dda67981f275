// The core as the gRPC services see it: each request becomes a task of the core's thread, which asks the modules there.
#ifndef R2CC_DAEMON_SERVICES_CORE_BACKEND_H_
#define R2CC_DAEMON_SERVICES_CORE_BACKEND_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/token_bucket.h"
#include "base/executor.h"
#include "base/mailbox.h"
#include "daemon/core/event_log.h"
#include "daemon/core/event_reporter.h"
#include "daemon/core/view_broadcaster.h"
#include "daemon/jobs/job_service.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rails/rail_alarms.h"
#include "daemon/reload/reload_service.h"
#include "daemon/rpc/backend.h"
#include "daemon/services/explain_service.h"
#include "daemon/services/forget_service.h"
#include "daemon/services/metrics_service.h"
#include "daemon/services/operator_service.h"
#include "daemon/services/report_service.h"
#include "daemon/trust/refusals.h"
#include "daemon/trust/roles_in_force.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// Thread-safe, but for the constructor and the destructor.
class CoreBackend final : public Backend {
 public:
  struct Parts {
    Executor* core;
    const health::ClusterView* view;
    const EventReporter* reporter;
    PeerSet* peer_set;
    const PlanPublisher* publisher;
    JobService* jobs;
    OperatorService* operators;
    ForgetService* forget;
    ReportService* report;
    const ExplainService* explain;
    ReloadService* reload;
    const std::string* peer_address;  // where other daemons reach this one; the core's thread writes it
    EventLog* events;
    ViewBroadcaster* broadcaster;
    const RolesInForce* roles;
    Refusals* refusals;  // null: nobody counts
    bool insecure;
    const std::map<std::string, std::string>* state_alarms;  // of this node, each under a name of its own
    const std::vector<RailAlarm>* rail_alarms;
    MetricsService* metrics;
  };

  // The parts outlive it. A request that reaches the core once `*alive` is false is not answered by a part.
  CoreBackend(std::string node, const Parts& parts, std::shared_ptr<const bool> alive);
  CoreBackend(const CoreBackend&) = delete;
  CoreBackend& operator=(const CoreBackend&) = delete;

  absl::Status Allow(const Caller& caller, Role role) const override { return parts_.roles->Get()->Check(caller, role, node_); }
  void GetStatus(const v1::StatusRequest& request, Answer<v1::StatusReply> answer) override;
  void ListNics(const v1::ListNicsRequest& request, Answer<v1::ListNicsReply> answer) override;
  void ActOnNic(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer) override;
  void ListJobs(const v1::ListJobsRequest& request, Answer<v1::ListJobsReply> answer) override;
  void ReportJobs(const v1::ReportJobsRequest& request, const Caller& caller, Answer<v1::ReportJobsReply> answer) override;
  void GetPlan(const v1::GetPlanRequest& request, Answer<v1::Plan> answer) override;
  void ExplainNic(const v1::ExplainNicRequest& request, const Caller& caller, Answer<v1::ExplainNicReply> answer) override;
  void ProbePaths(const v1::ProbePathsRequest& request, const Caller& caller, Answer<v1::ProbePathsReply> answer) override;
  void ExplainPlan(const v1::ExplainPlanRequest& request, Answer<v1::ExplainPlanReply> answer) override;
  void ForgetNode(const v1::ForgetNodeRequest& request, const Caller& caller, Answer<v1::ForgetNodeReply> answer) override;
  void GetConfig(const v1::ConfigRequest& request, Answer<v1::ConfigReply> answer) override;
  void GetMetrics(Answer<std::shared_ptr<const MetricFacts>> answer) override;
  void Reload(const v1::ReloadRequest& request, const Caller& caller, Answer<v1::ReloadReply> answer) override;
  void ReceiveView(v1::NodeView view, uint64_t stream, const Caller& from, std::function<void()> taken = nullptr) override;
  void EndStream(uint64_t stream) override;
  EventLog& events() override { return *parts_.events; }
  ViewBroadcaster& broadcaster() override { return *parts_.broadcaster; }

 private:
  // As Allow; a refusal is told. `what` is what the caller wants.
  absl::Status Judge(const Caller& caller, Role role, const std::string& what) const;
  absl::Status JudgeAction(const Caller& caller, const v1::NicActionRequest& request) const;
  struct Received {
    v1::NodeView view;
    uint64_t stream = 0;
    Caller from;
    bool ended = false;  // the stream, and there is no view
    std::function<void()> taken;
  };
  // Lets a speaker go on: at once, or when `who`, his node, may speak again. The view is gone by then.
  void LetSpeak(const std::string& who, const Caller& from, std::function<void()> taken);

  v1::NodeView ShownNode(const health::NodeEntry& entry) const;
  // Who runs which release.
  void AddReleases(v1::ClusterSummary* summary) const;

  const std::string node_;
  const Parts parts_;
  const std::shared_ptr<const bool> alive_;
  const Nanos started_;
  struct Views {
    TokenBucket allowance;
    Nanos told = 0;  // that it speaks too much
  };
  std::map<std::string, Views> views_;  // by node
  QueueMailbox<Received> received_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_CORE_BACKEND_H_
