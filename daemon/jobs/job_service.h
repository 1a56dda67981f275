// Takes the reports of jobs: matches their rails, keeps their sums, turns what they saw into evidence and events.
#ifndef R2CC_DAEMON_JOBS_JOB_SERVICE_H_
#define R2CC_DAEMON_JOBS_JOB_SERVICE_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/event_reporter.h"
#include "daemon/io/attach_server.h"
#include "daemon/jobs/held_operations.h"
#include "daemon/jobs/job_hangs.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/rails/rail_match.h"
#include "health/evidence/evidence.h"
#include "health/probe/reports.h"

namespace r2cc::daemon {

// The core's thread only.
class JobService {
 public:
  struct Outputs {
    // This node's NICs, as of now.
    std::function<std::vector<MatchableNic>()> nics;
    std::function<void(const std::vector<health::Evidence>&)> evidence;
    std::function<uint64_t()> refused;
    // A job reports that a link between `nic` and `peer` carries less than it should: the daemon's own probes decide.
    std::function<void(const std::string& nic, const health::NicKey& peer)> look = [](const auto&, const auto&) {};
    // An operator keeps all traffic off it, at once: fail-nic, or a drain at once.
    std::function<bool(const health::NicKey& nic)> taken = [](const health::NicKey&) { return false; };
  };

  // The reporter outlives the service. `own_netns_inode`: of the daemon.
  JobService(EventReporter* reporter, uint64_t own_netns_inode, Outputs outputs)
      : reporter_(reporter), own_netns_inode_(own_netns_inode), outputs_(std::move(outputs)) {}

  // The callbacks for an attach server.
  AttachServer::Callbacks Callbacks();

  // The jobs with a rail on `nic`: "train (pid 4711)". `job`: only those of this name; empty: all.
  std::vector<std::string> JobsOn(const std::string& nic, const std::string& job = "") const;
  // The traffic of these jobs over it.
  v1::NicTraffic TrafficOn(const std::string& nic, const std::string& job = "") const;
  const JobRegistry& registry() const { return registry_; }
  // See JobRegistry.
  bool TakeChanged() { return registry_.TakeChanged(); }
  void Restore(const v1::KeptJobs& kept) { registry_.Restore(kept, reporter_->Now().realtime_ns); }
  // At least twice a second.
  void Tick() {
    hangs_.Tick();
    ReportHeld();
    JudgeTaken();
  }
  const JobHangs& hangs() const { return hangs_; }
  // Connections and requests that the attach server turned away.
  uint64_t refused() const { return outputs_.refused(); }

 private:
  // Events that the jobs of a share may still cause: jobs that fence without end, or come and go, must not displace all others from the
  // log.
  struct Allowance {
    Nanos as_of = 0;
    double events = 0;
    uint64_t suppressed = 0;
  };
  struct Loss {
    JobId id = 0;
    uint32_t rail = 0;
    Nanos when = 0;      // of the loss
    Nanos received = 0;  // by this daemon
    health::NicKey own, peer;
  };
  bool MayReport(const std::string& share);
  AttachDecision OnAttach(JobId id, const JobProcess& process, const plan::AttachRequest& request);
  void OnRecord(JobId id, const plan::EvidenceRecord& record);
  // `report`, made of `record`, becomes evidence.
  void Blame(const plan::EvidenceRecord& record, const health::JobReport& report);
  // True once for each link of the process until it carries data again.
  bool IsNews(JobId id, const plan::EvidenceRecord& record);
  // Whether an operator took the NIC of this loss, or that of the other end.
  void NoteLoss(JobId id, const plan::EvidenceRecord& record, Nanos when);
  bool IsTaken(const Loss& loss);
  void JudgeTaken();
  void NoteTraffic(JobId id, const plan::EvidenceRecord& record);
  void OnShare(JobId id, const plan::EvidenceRecord& record);
  // The beginning of every report.
  health::JobReport ReportOf(JobId id, const plan::EvidenceRecord& record, health::JobReport::What what) const;
  // An operation of NCCL waited for a rail that was lost at `when`.
  void OnHeld(JobId id, const plan::EvidenceRecord& record, Nanos when);
  void ReportHeld();
  void OnEnd(JobId id);
  // Handles the records of a job about a peer that it gave up on; they follow each other.
  void OnGaveUp(JobId id, const std::vector<plan::EvidenceRecord>& records);
  void ReportGaveUp(JobId id, const std::string& peer, const std::vector<plan::EvidenceRecord>& records);

  EventReporter* const reporter_;
  const uint64_t own_netns_inode_;
  const Outputs outputs_;
  JobRegistry registry_;
  JobHangs hangs_{reporter_, &registry_, [this](JobId id) { return MayReport(shares_[id]); }};
  HeldEvents held_events_;
  std::map<std::string, Allowance> allowances_;  // by share
  std::map<JobId, std::string> shares_;          // of those that are attached
  // By NIC of this node and process: when it reported the last bytes. Only attached ones.
  std::map<std::string, std::map<JobId, Nanos>> moved_;
  // Links that could not be opened, as reported: by process, rail and peer.
  std::map<JobId, std::set<std::pair<uint32_t, std::string>>> unproven_;
  std::map<std::string, Nanos> looked_;  // by NIC
  // Losses whose origin is not known yet, as another node's command may come here after the loss that it causes.
  std::vector<Loss> losses_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_JOB_SERVICE_H_
