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
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/config/config.h"
#include "daemon/core/event_log.h"
#include "daemon/core/event_reporter.h"
#include "daemon/core/view_broadcaster.h"
#include "daemon/jobs/job_service.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rpc/backend.h"
#include "daemon/wiring_parts.h"
#include "daemon/world.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

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
  // Ends all modules: no job, peer or store gets anything from this daemon any more.
  void Stop();
  // Before Stop(), where the daemon ends on purpose: jobs believe its page for longer than that of one that died.
  void EndOnPurpose() { world_.page->EndOnPurpose(world_.core->Now()); }
  // Publishes the address at which other daemons reach this one.
  void SetPeerAddress(const std::string& address);
  // Why no other node reaches what it listens on: an alarm in `status` until it ends.
  void SetListenAlarm(const std::string& alarm) { alarms_.Set("listen", alarm); }
  // Sets why HTTP is not served, as an alarm.
  void SetHttpAlarm(const std::string& alarm) { alarms_.Set("http", alarm); }
  // Reads the configuration again: `caller` has sent a signal, which the kernel allows only to permitted users. `done` is called when the
  // result is in force.
  void Reload(const Caller& caller, std::function<void()> done);
  // How this node is, in one line for people.
  std::string StatusLine() const;

  // The interface for the gRPC services. Its methods are thread-safe.
  Backend& backend() { return services_.backend; }

 private:
  // Advance runs once after the task at hand, however often this is called: what changes in one task makes one view and one plan.
  void ScheduleAdvance();
  // Brings the page, the peers and the store up to date, as far as the pacer lets it.
  void Advance();
  // Takes the own state into the cluster's view. False if it is not news, or too soon.
  bool UpdateOwn(Nanos now);
  void UpdatePlan(Nanos now);
  void PublishOwnView();
  // Publishes the same verdicts, with the other changed contents of this node's view.
  void PublishNewEpoch();
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
  // Follows NICs that come, go and move: the setting of one is kept for when it comes again.
  void FollowNics(const std::vector<NicSpec>& next);
  // Has Advance run at `when`, or now if that is over.
  void AdvanceAt(Nanos when);
  Epoch NextEpoch();
  // The callbacks of the groups of parts.
  ConfiguredParts::Outputs ConfiguredOutputs();
  ProbeParts::Outputs ProbeOutputs();
  PeerSet::Outputs PeerOutputs();
  JobService::Outputs JobOutputs();
  // Takes what former runs have kept: events, operators' settings, reports of jobs.
  void RestoreFormerRuns();
  void KeepJobs();
  // Takes new addresses of NICs' interfaces. NICs with an address in the configuration keep it.
  void FollowAddresses();

  const Config config_;        // as it was at the start
  std::vector<NicSpec> nics_;  // as the configuration has them now
  const World world_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::string peer_address_;

  EventLog events_;
  ViewBroadcaster broadcaster_;
  EventReporter reporter_;
  Alarms alarms_;
  KeptParts kept_;
  ConfiguredParts configured_;
  health::ClusterView cluster_;
  ProbeParts probes_;
  PeerSet peer_set_;
  PlanPublisher publisher_;
  JobService jobs_;
  ServiceParts services_;
  Pace pace_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_WIRING_H_
