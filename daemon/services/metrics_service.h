// Gathers the values of the metrics.
#ifndef R2CC_DAEMON_SERVICES_METRICS_SERVICE_H_
#define R2CC_DAEMON_SERVICES_METRICS_SERVICE_H_

#include <map>
#include <string>
#include <vector>

#include "daemon/core/event_reporter.h"
#include "daemon/jobs/job_service.h"
#include "daemon/metrics/counters.h"
#include "daemon/metrics/facts.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rails/rail_alarms.h"
#include "daemon/rails/rail_watch.h"
#include "daemon/rails/rdma_paths.h"
#include "daemon/reload/certificate_watch.h"
#include "daemon/reload/reload_service.h"
#include "daemon/services/report_service.h"
#include "daemon/trust/refusals.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The core's thread only.
class MetricsService {
 public:
  struct Parts {
    const health::ClusterView* view;
    const EventReporter* reporter;
    const PeerSet* peer_set;
    const PlanPublisher* publisher;
    const JobService* jobs;
    const RailWatch* rails;
    const RdmaPaths* rdma_paths;
    const ReloadService* reload;
    const CertificateWatch* certificates;
    const Refusals* refusals;  // null: nobody counts
    const TurnFacts* turns;    // null: nobody measures
    bool insecure;
    const std::map<std::string, std::string>* state_alarms;
    const std::vector<RailAlarm>* rail_alarms;
    ReportService* report;
  };

  // The parts outlive it.
  explicit MetricsService(const Parts& parts)
      : parts_(parts), counters_(parts.reporter->node()), started_ns_(parts.reporter->Now().realtime_ns) {}

  void Count(const v1::Event& event) { counters_.Count(event); }
  MetricFacts Gather();

 private:
  void AddNics(MetricFacts* facts);
  void AddProbes(MetricFacts* facts);
  void AddJobs(MetricFacts* facts);
  void AddCluster(MetricFacts* facts) const;
  void AddSaved(MetricFacts* facts) const;

  const Parts parts_;
  EventCounters counters_;
  GrowingSums traffic_;  // of jobs, by NIC and what
  GrowingSums probes_;   // the same
  GrowingSums dropped_;
  const int64_t started_ns_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_METRICS_SERVICE_H_
