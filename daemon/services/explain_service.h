// Explains verdicts to people: why a NIC is in its state, what the probes between two nodes show, why the plan is as it is.
#ifndef R2CC_DAEMON_SERVICES_EXPLAIN_SERVICE_H_
#define R2CC_DAEMON_SERVICES_EXPLAIN_SERVICE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "daemon/core/answer.h"
#include "daemon/core/event_log.h"
#include "daemon/core/event_reporter.h"
#include "daemon/io/peer_transport.h"
#include "daemon/nics/local_health.h"
#include "daemon/page/plan_publisher.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rails/rail_watch.h"
#include "daemon/services/operator_service.h"
#include "health/io/topology.h"

namespace r2cc::daemon {

// The verdict on a NIC from the states of the NIC, its link and its cable, as text for a person. Pure.
struct NicVerdict {
  std::string kind;  // of v1::ExplainNicReply::verdict
  std::string text;
  std::vector<std::string> advice;
};
// `fault`: of the rail probes. `large`: of the large ones among them. `far_end`: the NIC at the other end of a direct cable, as its own
// node publishes it; null if there is a switch, or if nothing is known of that NIC.
NicVerdict MakeVerdict(const health::NicKey& nic, const health::NicStatus& status, const health::Fault& fault, const health::NicKey* cable,
                       const health::NicStatus* far_end, const health::LargeFault& large = {});

// The verdict of this node if the daemon of `nic` cannot be asked. `answers`: this node's NICs that it answered lately; `silent`: this
// node's NICs that it did not answer; `others`: other nodes' NICs that answered a silent one lately.
NicVerdict MakeVerdictFromAfar(const health::NicKey& nic, const std::vector<health::NicKey>& answers,
                               const std::vector<health::NicKey>& silent, const std::vector<health::NicKey>& others);

// The core's thread only.
class ExplainService {
 public:
  struct Parts {
    const LocalHealth* local;
    RailWatch* rails;
    const health::ClusterView* view;
    const PeerSet* peer_set;
    const OperatorService* operators;
    const PlanPublisher* publisher;
    const EventLog* events;
    const EventReporter* reporter;
    PeerTransport* peers;
    // The traffic of jobs over a NIC of this node; only those named `job`, if it is not empty.
    std::function<v1::NicTraffic(const std::string& nic, const std::string& job)> traffic;
    // Which part a NIC of this node is.
    std::function<v1::NicInventory(const health::NicIdentity& nic)> inventory;
  };

  // The parts outlive it.
  explicit ExplainService(const Parts& parts) : parts_(parts) {}

  // A request about this node is answered here; any other is forwarded to its node's daemon, unless a peer forwarded it already. If that
  // daemon cannot be asked, this node answers with what it knows.
  void ExplainNic(const v1::ExplainNicRequest& request, const Caller& caller, Answer<v1::ExplainNicReply> answer) const;
  void ProbePaths(const v1::ProbePathsRequest& request, const Caller& caller, Answer<v1::ProbePathsReply> answer) const;
  // The page behind `after_node`.
  v1::ExplainPlanReply ExplainPlan(const std::string& after_node) const;

  // The machine's inside, once it has been read.
  void SetTopology(health::NodeTopology topology) { topology_ = std::move(topology); }

 private:
  // `job`: the job whose traffic is reported.
  v1::ExplainNicReply Explain(const health::NicStatus& status, const std::string& job) const;
  v1::ExplainNicReply ExplainFromAfar(const health::NicKey& nic, const health::NicStatus& status, const std::string& why) const;
  // The part that does not depend on the NIC's node.
  v1::ExplainNicReply Reply(const health::NicKey& nic, const health::NicStatus& status, const NicVerdict& verdict) const;
  void AddPairs(const std::function<bool(const health::PairKey&)>& wanted, google::protobuf::RepeatedPtrField<v1::PairStatus>* out) const;
  // OK if this daemon is to answer for `node`; UNAVAILABLE with an empty message if the peer's is.
  absl::Status CheckTarget(const std::string& node, const Caller& caller) const;

  const Parts parts_;
  health::NodeTopology topology_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_EXPLAIN_SERVICE_H_
