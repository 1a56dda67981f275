// The view of the own node: evidence in, NIC verdicts out. Pure: no I/O, time is an argument. One thread at a time.
#ifndef R2CC_HEALTH_VIEW_NODE_HEALTH_H_
#define R2CC_HEALTH_VIEW_NODE_HEALTH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "health/evidence/evidence.h"
#include "health/evidence/evidence_log.h"
#include "health/view/nic_machine.h"
#include "health/view/node_state.h"

namespace r2cc::health {

struct NodePolicy {
  NicPolicy nic;
  // DEGRADED below this share of the configured rate: a link that negotiated down loses half or more.
  uint32_t rate_min_permille = 900;
  // DEGRADED at this many errors per second, until a sample is below it again for errors_clear.
  int64_t errors_per_s_max = 10;
  Nanos errors_clear = 10 * kNanosPerSecond;
};

// A change of one NIC's state.
struct NicChange {
  std::string nic;
  NicTransition transition;
  Nanos when = 0;
};

class NodeHealth {
 public:
  // `nics`: names are unique. `words`: what the operator said in the daemon's former life; words about unknown NICs are ignored.
  NodeHealth(std::string node, std::vector<NicIdentity> nics, const NodePolicy& policy, const OperatorWords& words, Nanos now);

  // Judges one piece of evidence at its time (`evidence.when`; time that would go back stands still). Evidence about NICs that are
  // not this node's is kept in the log and judged only as far as it explains this node's. Returns the changes of state.
  std::vector<NicChange> Handle(const Evidence& evidence);

  // Lets time do its part. Due at next_tick(); NicMachine::kNever: nothing to wait for.
  std::vector<NicChange> Tick(Nanos now);
  Nanos next_tick() const;

  // What was learnt of a NIC's identity or rate, for display. False: nothing new, or no such NIC.
  bool Learn(const std::string& nic, const std::string& mac, const std::string& pci);

  // The whole word about this node, but for the epoch, which the caller stamps when it publishes.
  NodeState Snapshot() const;
  // Grows whenever Snapshot() may have changed.
  uint64_t revision() const { return revision_; }

  bool Has(const std::string& nic) const { return nics_.contains(nic); }
  // True until every NIC's link has been heard of.
  bool initializing() const;
  OperatorWords words() const;
  const EvidenceLog& log() const { return log_; }
  const std::string& node() const { return node_; }

 private:
  struct Nic {
    NicIdentity identity;
    NicMachine machine;
    uint16_t weight_permille = kFullWeightPermille;
    uint64_t kernel_rate_bits_per_s = 0;
    std::string rate_complaint;    // empty: none
    std::string errors_complaint;  // empty: none
    Nanos errors_last = 0;         // the last sample above the limit
    std::set<NicKey> suspected_by; // the other ends of the links that jobs gave up
  };

  void Judge(Nic& nic, const Evidence& evidence, Nanos now, std::vector<NicChange>* changes);
  void Feed(Nic& nic, NicEvent event, Nanos now, const std::string& cause, std::vector<NicChange>* changes);
  void FeedImpairments(Nic& nic, Nanos now, std::vector<NicChange>* changes);
  void ForgivePeer(Nic& nic, const NicKey& peer, Nanos now, std::vector<NicChange>* changes);
  void Advance(Nic& nic, Nanos now, std::vector<NicChange>* changes);

  const std::string node_;
  const NodePolicy policy_;
  std::vector<std::string> order_;  // NIC names as configured
  std::map<std::string, Nic> nics_;
  EvidenceLog log_;
  Nanos now_;
  uint64_t revision_ = 1;
};

// The word that sums up `nics`; `initializing`: some link has not been heard of.
NodeWord WordFor(const std::vector<NicStatus>& nics, bool initializing);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NODE_HEALTH_H_
