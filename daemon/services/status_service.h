// Answers what this daemon knows: its status, and the lists of NICs, jobs and the plan.
#ifndef R2CC_DAEMON_SERVICES_STATUS_SERVICE_H_
#define R2CC_DAEMON_SERVICES_STATUS_SERVICE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/core/event_reporter.h"
#include "daemon/jobs/job_service.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rails/rail_alarms.h"
#include "daemon/reload/reload_service.h"
#include "daemon/services/operator_service.h"
#include "daemon/services/report_service.h"
#include "daemon/trust/refusals.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The core's thread only.
class StatusService {
 public:
  struct Parts {
    std::string node;
    const Executor* core;
    const health::ClusterView* view;
    const EventReporter* reporter;
    const PeerSet* peer_set;
    const PlanPublisher* publisher;
    const JobService* jobs;
    const OperatorService* operators;
    ReportService* report;
    const ReloadService* reload;
    const std::string* peer_address;  // where other daemons reach this one
    const Refusals* refusals;         // null: nobody counts
    bool insecure;
    const std::map<std::string, std::string>* state_alarms;  // of this node, each under a name of its own
    const std::vector<RailAlarm>* rail_alarms;
  };

  // The parts outlive it.
  explicit StatusService(Parts parts) : parts_(std::move(parts)), started_(parts_.core->Now()) {}
  StatusService(const StatusService&) = delete;
  StatusService& operator=(const StatusService&) = delete;

  v1::StatusReply Status(const v1::StatusRequest& request) const;
  absl::StatusOr<v1::ListNicsReply> ListNics(const v1::ListNicsRequest& request) const;
  v1::ListJobsReply ListJobs(const v1::ListJobsRequest& request) const;
  v1::Plan GetPlan(const v1::GetPlanRequest& request) const;

 private:
  v1::NodeView ShownNode(const health::NodeEntry& entry) const;
  // Adds which nodes run which release.
  void AddReleases(v1::ClusterSummary* summary) const;

  const Parts parts_;
  const Nanos started_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_STATUS_SERVICE_H_
