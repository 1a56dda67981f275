// Carries out an operator's request about a NIC: it checks it, does it here or sends it to the NIC's own daemon, keeps it over restarts,
// and records it.
#ifndef R2CC_DAEMON_SERVICES_OPERATOR_SERVICE_H_
#define R2CC_DAEMON_SERVICES_OPERATOR_SERVICE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "daemon/core/answer.h"
#include "daemon/core/event_reporter.h"
#include "daemon/io/peer_transport.h"
#include "daemon/nics/local_health.h"
#include "daemon/peers/peer_set.h"
#include "daemon/state/audit.h"
#include "daemon/state/state_keeper.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The core's thread only.
class OperatorService {
 public:
  struct Parts {
    Executor* executor;
    LocalHealth* local;
    const health::ClusterView* view;
    PeerSet* peer_set;
    PeerTransport* peers;
    StateKeeper* keeper;
    Audit* audit;
    EventReporter* reporter;
    // The jobs with traffic over a NIC of this node, for people; only those named `job`, if it is not empty.
    std::function<std::vector<std::string>(const std::string& nic, const std::string& job)> jobs_on;
    std::function<BootMoment()> boot_now;
  };

  // The parts outlive it. `words`: the settings in force at the start, also of NICs that are missing today. `cabled`: the NICs whose links
  // were up in former runs.
  OperatorService(const Parts& parts, health::OperatorSettings settings, std::set<std::string> cabled)
      : parts_(parts), settings_(std::move(settings)), cabled_(std::move(cabled)) {}
  ~OperatorService() { *alive_ = false; }

  // `may`: whether the caller has the role, where it is this node that decides.
  void Act(const v1::NicActionRequest& request, const Caller& caller, const absl::Status& may, Answer<v1::NicActionReply> answer);

  // The drill on this node's NIC is over.
  void OnDrillEnd(const std::string& nic);
  // Reports a drill that ended while r2ccd did not run.
  void ReportEndedBefore(const std::string& nic);
  // Every kDrillSaveInterval: writes how much of the drills is left.
  void Tick();

  // Writes what is to be kept.
  void Save(StateKeeper::Done done);
  // Writes it if a NIC's link was up for the first time.
  void KeepCabled();

  // The setting of a NIC that is not there yet, as of the last Save(), and whether its link was up at some time.
  health::OperatorSetting SettingOf(const std::string& nic) const {
    const auto settings = settings_.find(nic);
    return settings == settings_.end() ? health::OperatorSetting() : settings->second;
  }
  bool WasCabled(const std::string& nic) const { return cabled_.contains(nic); }

  // NOT_FOUND with the names that there are.
  absl::Status UnknownNode(const std::string& node) const;
  absl::Status UnknownNic(const std::string& nic) const;

 private:
  // Refuses what would leave this node without a NIC that carries traffic.
  absl::Status CheckNotLast(const v1::NicActionRequest& request, const std::vector<std::string>& jobs) const;
  // The jobs that the request affects.
  std::vector<std::string> JobsOn(const v1::NicActionRequest& request) const;
  absl::Status CheckJob(const v1::NicActionRequest& request) const;
  absl::Status Check(const v1::NicActionRequest& request, const Caller& caller) const;
  absl::StatusOr<v1::NicActionReply> ActHere(const v1::NicActionRequest& request);
  void Forward(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer);
  void Note(const v1::NicActionRequest& request, const Caller& caller, const absl::Status& status, const std::string& result,
            bool forwarded = false);
  void ReportDrillOver(const std::string& nic, const std::string& why);

  const Parts parts_;
  health::OperatorSettings settings_;
  std::set<std::string> cabled_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_OPERATOR_SERVICE_H_
