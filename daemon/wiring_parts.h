// The parts that Wiring joins, in groups of one duty. A group makes its parts and joins those that know each other; what happens elsewhere
// comes in as callbacks with names. All on the core's thread.
#ifndef R2CC_DAEMON_WIRING_PARTS_H_
#define R2CC_DAEMON_WIRING_PARTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "base/core/epoch.h"
#include "daemon/config/config.h"
#include "daemon/core/control_table.h"
#include "daemon/core/event_log.h"
#include "daemon/core/event_reporter.h"
#include "daemon/core/view_broadcaster.h"
#include "daemon/jobs/job_service.h"
#include "daemon/nics/local_health.h"
#include "daemon/nics/machine_nics.h"
#include "daemon/page/pacer.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rails/rail_alarms.h"
#include "daemon/rails/rail_watch.h"
#include "daemon/rails/rdma_paths.h"
#include "daemon/reload/certificate_watch.h"
#include "daemon/reload/reload_service.h"
#include "daemon/services/control_rows.h"
#include "daemon/services/core_backend.h"
#include "daemon/services/disagreement_service.h"
#include "daemon/services/explain_service.h"
#include "daemon/services/forget_service.h"
#include "daemon/services/metrics_service.h"
#include "daemon/services/operator_service.h"
#include "daemon/services/report_service.h"
#include "daemon/services/status_service.h"
#include "daemon/state/audit.h"
#include "daemon/state/event_history.h"
#include "daemon/state/job_keeper.h"
#include "daemon/state/saved_state.h"
#include "daemon/state/state_keeper.h"
#include "daemon/trust/roles_in_force.h"
#include "daemon/world.h"
#include "health/probe/fabric_probe.h"
#include "health/probe/rdma_probe.h"
#include "health/view/cluster_view.h"
#include "health/view/fleet.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// The alarms of `status`.
struct Alarms {
  // An empty `alarm` ends it.
  void Set(const std::string& about, const std::string& alarm);
  // Reports when a file of the state directory cannot be written, and when it can be again. `what` is lost meanwhile.
  std::function<void(const absl::Status&)> OnTurnOf(EventReporter* reporter, const std::string& file, const std::string& what);

  std::map<std::string, std::string> named;  // by what each is about: a file of the state directory, "nic NAME", "listen"
  std::vector<RailAlarm> rails;              // in order
  std::vector<health::FleetFault> fleet;     // as of fleet_revision of the view
  uint64_t fleet_revision = UINT64_MAX;
};

// The parts that outlive the daemon, and what its former runs have left.
struct KeptParts {
  KeptParts(const World& world, const Config& config, EventReporter* reporter, Alarms* alarms);

  StateKeeper settings;
  Audit audit;
  EventHistory history;
  JobKeeper jobs;
  std::string trouble;  // why the state file was set aside
  const absl::StatusOr<SavedState> loaded;
  const SavedState saved;
  std::vector<std::string> ended_drills;             // while the daemon did not run
  const health::OperatorSettings operator_settings;  // the operator's, of the former run
  const bool first_start;                            // nothing is kept of a former run
  const bool same_boot;
};

// The parts that follow the configuration while the daemon runs.
struct ConfiguredParts {
  struct Outputs {
    // Puts into force what can change.
    std::function<void(const Config& config, const RolePolicy& roles)> apply;
    std::function<int64_t()> now_s;
    std::function<void(const std::string& text)> set_certificate_alarm;
  };
  ConfiguredParts(const World& world, const Config& config, EventReporter* reporter, Alarms* alarms, Audit* audit, Outputs outputs);

  MissingNics missing;
  CertificateWatch certificates;
  RolesInForce roles;
  ReloadService reload;
};

// The probes of this node's NICs, and what judges them.
struct ProbeParts {
  struct Outputs {
    // This node's report about its NICs may have changed.
    std::function<void()> on_state;
    std::function<void(const std::string& nic)> on_drill_end;
    // After each sample of /sys.
    std::function<void()> on_sample;
  };
  // `words` and `cabled`: of the former run. The view and the reporter outlive it.
  ProbeParts(const World& world, const Config& config, const health::OperatorSettings& settings, const std::set<std::string>& cabled,
             const health::ClusterView* view, EventReporter* reporter, Outputs outputs);
  ProbeParts(const ProbeParts&) = delete;
  ProbeParts& operator=(const ProbeParts&) = delete;

  void Add(const health::NicIdentity& nic, const health::OperatorSetting& setting, bool was_cabled);
  void Remove(const std::string& nic);
  void SetAddress(const std::string& nic, const std::string& address);

  const Outputs outputs;
  const World& world;
  LocalHealth local;
  health::FabricProbe fabric;
  health::RdmaProbe rdma;
  RdmaPaths rdma_paths;
  RailWatch rails;
};

// The parts that answer requests.
struct ServiceParts {
  // All outlive it.
  struct Needs {
    const World* world;
    const Config* config;
    std::shared_ptr<const bool> alive;
    const std::string* peer_address;
    EventLog* events;
    ViewBroadcaster* broadcaster;
    EventReporter* reporter;
    Alarms* alarms;
    KeptParts* kept;
    ConfiguredParts* configured;
    const health::ClusterView* view;
    ProbeParts* probes;
    PeerSet* peer_set;
    PlanPublisher* publisher;
    JobService* jobs;
  };
  explicit ServiceParts(const Needs& needs);
  ServiceParts(const ServiceParts&) = delete;
  ServiceParts& operator=(const ServiceParts&) = delete;

  OperatorService operators;
  ForgetService forget;
  ReportService report;
  DisagreementService disagreement;
  ExplainService explain;
  MetricsService metrics;
  StatusService status;
  ControlTable control;
  CoreBackend backend;
};

// When what is published was, and what is due.
struct Pace {
  health::NodeState own;  // as last published
  Epoch epoch;
  Pacer pacer;
  uint64_t railed_changes = 0;  // of the view, as the rail watch has seen it
  std::vector<PeerSpec> direct_peers;
  uint32_t other_releases = 0;  // processes of jobs, as last published
  Nanos jobs_kept = 0;
  Nanos addresses_followed = 0;
  bool advance_scheduled = false;
  bool again_scheduled = false;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_WIRING_PARTS_H_
