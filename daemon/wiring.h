// The one place where the daemon's modules are made and joined. `main`, the tests and the simulator use the same one; they differ in the
// World that they give it.
//
//   probes         -> LocalHealth --+                  +-> PlanPublisher   -> page -> doorbells
//   jobs           -> JobService ---+-> ClusterView ---+-> ViewBroadcaster -> peers, store
//   peers, store   -> PeerSet ------+                  +-> EventReporter   -> event log
//   rails          -> RailWatch       -> LocalHealth
//                     RailWatch       -> RdmaPaths     -> RdmaProbe  -> LocalHealth
//   operator       -> OperatorService -> LocalHealth
//   gRPC services  -> CoreBackend     -> all of them
#ifndef R2CC_DAEMON_WIRING_H_
#define R2CC_DAEMON_WIRING_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/config/config.h"
#include "daemon/core/event_log.h"
#include "daemon/core/event_reporter.h"
#include "daemon/core/roles.h"
#include "daemon/core/view_broadcaster.h"
#include "daemon/io/addresses.h"
#include "daemon/io/attach_server.h"
#include "daemon/io/files.h"
#include "daemon/io/page_sink.h"
#include "daemon/io/peer_transport.h"
#include "daemon/io/store.h"
#include "daemon/jobs/job_service.h"
#include "daemon/nics/local_health.h"
#include "daemon/nics/machine_nics.h"
#include "daemon/page/pacer.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rails/rail_watch.h"
#include "daemon/rails/rdma_paths.h"
#include "daemon/reload/certificate_watch.h"
#include "daemon/reload/config_loader.h"
#include "daemon/reload/reload_service.h"
#include "daemon/rpc/backend.h"
#include "daemon/services/core_backend.h"
#include "daemon/services/explain_service.h"
#include "daemon/services/metrics_service.h"
#include "daemon/services/operator_service.h"
#include "daemon/services/report_service.h"
#include "daemon/state/audit.h"
#include "daemon/state/event_history.h"
#include "daemon/state/job_keeper.h"
#include "daemon/state/state_keeper.h"
#include "daemon/trust/refusals.h"
#include "daemon/trust/roles_in_force.h"
#include "health/io/datagram.h"
#include "health/io/fabric.h"
#include "health/io/link_watch.h"
#include "health/io/rdma_pairs.h"
#include "health/io/rdma_watch.h"
#include "health/io/sysfs.h"
#include "health/io/topology.h"
#include "health/probe/fabric_probe.h"
#include "health/probe/rdma_probe.h"
#include "health/view/cluster_view.h"
#include "health/view/fleet.h"

namespace r2cc::daemon {

// Everything outside of the daemon's own head. All of it outlives the Wiring.
struct World {
  Executor* core = nullptr;
  Executor* disk = nullptr;  // may block
  std::function<int64_t()> realtime_ns;
  std::function<Nanos()> boot_ns;  // CLOCK_BOOTTIME: since the machine was started, also while it slept
  health::LinkWatch* links = nullptr;
  const health::Sysfs* sysfs = nullptr;
  health::Datagrams* datagrams = nullptr;
  health::Fabric* fabric = nullptr;
  health::RdmaWatch* rdma = nullptr;                 // null: there are no RDMA devices
  health::RdmaPairs* rdma_pairs = nullptr;           // likewise
  const health::TopologySource* topology = nullptr;  // asked on `disk`
  Addresses* addresses = nullptr;
  Files* files = nullptr;
  PageSink* page = nullptr;
  AttachServer* jobs = nullptr;
  PeerTransport* peers = nullptr;
  Store* store = nullptr;
  ConfigLoader* config = nullptr;  // asked on `disk`; null: there is nothing to read again
  RolePolicy roles{DefaultGrants(-1, /*insecure=*/true), /*drills=*/true};
  Refusals* refusals = nullptr;      // null: nobody is refused anything before he comes here
  const TurnFacts* turns = nullptr;  // of the core; null: nobody measures
  // Of this life of the daemon.
  std::string boot_id;
  uint64_t incarnation = 1;                                                                          // random, not 0
  std::function<health::ProbeSecret()> new_probe_secret = [] { return health::ProbeSecret{0, 1}; };  // random, another with each call
  uint64_t netns_inode = 0;
};

// On the core's executor.
class Wiring {
 public:
  Wiring(Config config, World world);
  // REQUIRES: the core runs nothing any more, or this is its thread.
  ~Wiring();
  Wiring(const Wiring&) = delete;
  Wiring& operator=(const Wiring&) = delete;

  // Starts all modules. The first plan is in the page and the own view in the broadcaster when it returns OK.
  absl::Status Start();
  // Ends all modules: no job, peer or store hears from this daemon any more.
  void Stop();
  // Before Stop(), where the daemon ends on purpose: jobs believe its page for longer than that of one that died.
  void SayLastWord() { world_.page->LastWord(world_.core->Now()); }
  // Tells the other daemons where they reach this one.
  void SetPeerAddress(const std::string& address);
  // Why no other node reaches what it listens on: an alarm in `status` until it ends.
  void SetListenAlarm(const std::string& alarm) { SetAlarm("listen", alarm); }
  // Why nothing is served over HTTP, likewise.
  void SetHttpAlarm(const std::string& alarm) { SetAlarm("http", alarm); }
  // Reads the configuration again: `caller` has sent a signal, which the kernel lets nobody do who may not. `done` is told when what came
  // of it is in force.
  void Reload(const Caller& caller, std::function<void()> done);
  // How this node is, in one line for people.
  std::string StatusLine() const;

  // What the gRPC services ask. Its methods are thread-safe.
  Backend& backend() { return backend_; }

 private:
  // Advance runs once after the task at hand, however often this is called: what changes in one task makes one view and one plan.
  void ScheduleAdvance();
  // Brings the page, the peers and the store up to date, as far as the pacer lets it.
  void Advance();
  // Takes the own state into the cluster's view. False if it is not news, or too soon.
  bool UpdateOwn(Nanos now);
  void UpdatePlan(Nanos now);
  void PublishOwnView();
  // The same verdicts, with what else the view says of this node.
  void PublishAnew();
  void FollowReleases();
  // Logs what an operator should look at on the rails, once.
  void FollowRailAlarms();
  // Into the store: it had our entry, and has another one in its place.
  void PublishAgain();
  // On the disk's thread: it takes its time.
  void ReadTopology();
  void Every(Nanos interval, std::function<void()> task);
  // The jobs' nodes are probed, and talked to directly.
  void FollowJobs();
  void Apply(const Config& config, const RolePolicy& roles);
  void OfferRails(bool by_default);
  // NICs come, go, and move: what was said of one is kept for when it comes again.
  void FollowNics(const std::vector<NicSpec>& next);
  // Has Advance run at `when`, or now if that is over.
  void AdvanceAt(Nanos when);
  Epoch NextEpoch();
  BootMoment BootNow() const { return {world_.boot_id, world_.boot_ns(), world_.core->Now()}; }
  // An alarm of `status`; empty: it is over.
  void SetAlarm(const std::string& about, const std::string& alarm);
  // Told when a file of the state directory cannot be written, and when it can again. `what` is lost meanwhile.
  std::function<void(const absl::Status&)> OnTurnOf(const std::string& file, const std::string& what);
  // Takes up what former lives have kept: events, what operators said, what jobs met.
  void RestoreFormerLives();
  void KeepJobs();
  // NICs whose interfaces have got other addresses. Those that the configuration gives an address keep it.
  void FollowAddresses();
  std::map<std::string, health::NicKey> Cables() const;

  const Config config_;        // as it was at the start
  std::vector<NicSpec> nics_;  // as the configuration has them now
  const World world_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::string peer_address_;
  Nanos followed_ = 0;  // addresses were asked for

  EventLog events_;
  ViewBroadcaster broadcaster_;
  EventReporter reporter_;
  StateKeeper keeper_;
  std::string state_trouble_;
  std::map<std::string, std::string> state_alarms_;  // by what each is about: a file of the state directory, "nic NAME", "listen"
  std::vector<RailAlarm> rail_alarms_;               // in order
  std::vector<health::FleetFault> fleet_;            // as of fleet_revision_ of the view
  uint64_t fleet_revision_ = UINT64_MAX;
  Audit audit_;
  MissingNics missing_;
  CertificateWatch certificates_;
  EventHistory history_;
  JobKeeper job_keeper_;
  RolesInForce roles_;
  ReloadService reload_;
  const absl::StatusOr<SavedState> loaded_;
  SavedState saved_;
  std::vector<std::string> ended_drills_;  // while the daemon did not run
  const health::OperatorSettings words_;   // the operator's, of the former life
  const bool first_start_;                 // nothing is kept of a former life
  const bool same_boot_;
  Epoch epoch_;
  health::ClusterView cluster_;
  LocalHealth local_;
  health::FabricProbe fabric_;
  health::RdmaProbe rdma_;
  RdmaPaths rdma_paths_;
  RailWatch rails_;
  PeerSet peer_set_;
  PlanPublisher publisher_;
  JobService jobs_;
  OperatorService operator_;
  ForgetService forget_;
  ReportService report_;
  ExplainService explain_;
  MetricsService metrics_;
  CoreBackend backend_;

  health::NodeState own_;  // as last published
  Pacer pacer_;
  uint64_t railed_changes_ = 0;  // of the view, as the rail watch has seen it
  std::vector<PeerSpec> direct_peers_;
  Nanos jobs_kept_ = 0;
  uint32_t told_other_releases_ = 0;  // processes of jobs, as last published
  bool advance_scheduled_ = false;
  bool again_scheduled_ = false;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_WIRING_H_
