// What the operator says about a NIC: checked, done here or sent to the NIC's own daemon, kept over restarts.
#ifndef R2CC_DAEMON_OPERATOR_SERVICE_H_
#define R2CC_DAEMON_OPERATOR_SERVICE_H_

#include <functional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "daemon/event_reporter.h"
#include "daemon/io/peer_transport.h"
#include "daemon/local_health.h"
#include "daemon/peer_set.h"
#include "daemon/rpc/answer.h"
#include "daemon/rpc/backend.h"
#include "daemon/state_keeper.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The core's thread only.
class OperatorService {
 public:
  struct Parts {
    Executor* executor;
    LocalHealth* local;
    const health::ClusterView* view;
    const PeerSet* peer_set;
    PeerTransport* peers;
    StateKeeper* keeper;
    EventReporter* reporter;
    // The jobs whose traffic goes over a NIC of this node, for people.
    std::function<std::vector<std::string>(const std::string& nic)> jobs_on;
  };

  // The parts outlive it. `saved`: what was read at the start.
  OperatorService(const Parts& parts, SavedState saved) : parts_(parts), saved_(std::move(saved)) {}

  void Act(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer);

  // Writes what is to be kept, for the boot time of this life.
  void Save(std::function<void()> done);
  // Writes it if a NIC's link was up for the first time.
  void KeepCabled();

  // NOT_FOUND with the names that there are.
  absl::Status UnknownNode(const std::string& node) const;
  absl::Status UnknownNic(const std::string& nic) const;

 private:
  // Refuses what would leave this node without a NIC that carries traffic.
  absl::Status CheckNotLast(const v1::NicActionRequest& request, const std::vector<std::string>& jobs) const;
  void ActHere(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer);

  const Parts parts_;
  SavedState saved_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_OPERATOR_SERVICE_H_
