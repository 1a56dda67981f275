// The view of the own node: evidence in, NIC verdicts out. Pure: no I/O, time is an argument. One thread at a time.
#ifndef R2CC_HEALTH_VIEW_NODE_HEALTH_H_
#define R2CC_HEALTH_VIEW_NODE_HEALTH_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/evidence/evidence.h"
#include "health/evidence/evidence_log.h"
#include "health/view/nic_machine.h"
#include "health/view/node_state.h"

namespace r2cc::health {

struct NodePolicy {
  NicPolicy nic;
  // DEGRADED below this share of the configured rate, or of the best that the kernel ever named: a link that negotiated down loses
  // half or more.
  uint32_t rate_min_permille = 900;
  // DEGRADED when a counter's rule is broken, until errors_clear has passed without such a sample.
  Nanos errors_clear = 10 * kNanosPerSecond;
  // DEGRADED when a job reports that the NIC moves less than this share of the job's best, and until it reports the second share. Chunks
  // are pulled by whichever rail has room, so healthy rails differ a little all the time.
  uint32_t slow_permille = 700;
  uint32_t steady_permille = 850;
  // A share that is not below this must be reported for this time before it counts: while processors are short, a rail is slow for a
  // moment.
  uint32_t slow_sure_permille = 400;
  Nanos slow_hold = 3 * kNanosPerSecond;
  // A share that moves by less than this is no news: each change is a new plan for all nodes.
  uint32_t share_step_permille = 100;
  // Jobs repeat themselves each second; one that stopped, or has nothing more to send, is forgotten after this time.
  Nanos slow_clear = 5 * kNanosPerSecond;
  // A slow rail is cleared this time after the job reported the end, so that an undecided job does not make the state flicker.
  Nanos slow_settle = 2 * kNanosPerSecond;
  size_t evidence_max = kEvidenceLogEntriesMax;  // kept to explain verdicts
};

// A change of one NIC's state.
struct NicChange {
  std::string nic;
  NicTransition transition;
  Nanos when = 0;
};

class NodeHealth {
 public:
  // `nics`: names are unique. `settings`: the operator's, from the daemon's former run; those of unknown NICs are ignored. `cabled`: NICs
  // whose link is known to have been up before; on another NIC a link that is down is no fault until it was up once.
  NodeHealth(std::string node, std::vector<NicIdentity> nics, const NodePolicy& policy, const OperatorSettings& settings, Nanos now,
             const std::set<std::string>& cabled = {});

  // Judges one piece of evidence at its time (`evidence.when`; a time that would go back counts as the last one). Evidence about NICs that
  // are not this node's is kept in the log and judged only as far as it explains this node's. Returns the changes of state.
  std::vector<NicChange> Handle(const Evidence& evidence);

  // Lets time do its part. Due at next_tick(); NicMachine::kNever: nothing to wait for.
  std::vector<NicChange> Tick(Nanos now);
  Nanos next_tick() const;

  // Sets the rate that a NIC should have from now on; 0: the kernel's. No effect if there is no such NIC.
  std::vector<NicChange> SetRate(const std::string& nic, uint64_t rate_bits_per_s, Nanos now);

  // Sets the address of a NIC, which may have changed. No effect if there is no such NIC.
  void SetAddress(const std::string& nic, const std::string& address);

  // Adds a NIC with the operator's setting for it. REQUIRES: there is none of its name. `cabled`: as above.
  void Add(const NicIdentity& identity, const OperatorSetting& setting, bool cabled, Nanos now);
  // It is none of this node's any more. No effect if there is no such NIC.
  void Remove(const std::string& nic);

  // The MTU of its interface. No effect if there is no such NIC.
  void SetMtu(const std::string& nic, uint32_t mtu);
  // Adds facts about a NIC's identity; an empty one is not known. No effect if there is no such NIC.
  void Learn(const std::string& nic, const std::string& mac, const std::string& pci, uint64_t port_guid = 0);

  // This node's state. The caller adds the results of its rail probes (WithRails) and the epoch.
  const NodeState& Snapshot() const { return snapshot_; }
  // Grows with each change of Snapshot().
  uint64_t revision() const { return revision_; }

  // The NICs whose drills have ended automatically since the last call.
  std::vector<std::string> TakeEndedDrills() { return std::exchange(ended_drills_, {}); }

  bool Has(const std::string& nic) const { return nics_.contains(nic); }
  // True until there is a report of every NIC's link.
  bool initializing() const;
  OperatorSettings settings() const;
  // The NICs whose link was up at some time.
  std::set<std::string> cabled() const;
  const EvidenceLog& log() const { return log_; }
  const std::string& node() const { return node_; }

 private:
  // Peers are named by jobs: a limit on what a job can make the daemon remember.
  static constexpr size_t kPeersMax = 256;
  struct Slow {
    uint32_t share_permille = kFullWeightPermille;
    std::string who;
    Nanos since = 0;
    bool only_user = true;
    Nanos until = 0;
    bool sure = false;  // it counts
  };
  // The user of the job that reports it, and the other end of the link; an empty one: not known.
  using SlowKey = std::pair<uint32_t, NicKey>;
  struct Nic {
    NicIdentity identity;
    NicMachine machine;
    bool cabled = false;  // its link was up at some time
    bool drained_now = false;
    uint32_t mtu = 0;
    uint16_t weight_permille = kFullWeightPermille;
    std::set<std::string> drained_jobs;
    uint64_t kernel_rate_bits_per_s = 0;
    uint64_t best_rate_bits_per_s = 0;
    std::string rate_complaint;                  // empty: none
    std::string errors_complaint;                // empty: none
    std::string rdma_complaint;                  // empty: none
    std::string large_complaint;                 // the same for large packets
    Nanos errors_until = 0;                      // when errors_complaint is dropped
    std::map<NicKey, std::string> broken_paths;  // by the other end
    std::map<SlowKey, Slow> slow;                // reports of jobs
    std::set<NicKey> suspected_by;               // the other ends of the links that jobs gave up; an empty key: not known
  };

  void Restore(Nic* nic, const OperatorSetting& setting, Nanos now);
  void JudgeDrill(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void Judge(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgeLinkDown(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgeRate(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void CompareRate(Nic* nic, std::vector<NicChange>* changes);
  void JudgeLarge(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgeRdma(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgeErrors(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgeSlow(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgeComplaint(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgePath(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes);
  void JudgePeer(const Evidence& evidence, std::vector<NicChange>* changes);
  void Forgive(Nic* nic, const NicKey& peer, std::vector<NicChange>* changes);
  void Feed(Nic* nic, NicEvent event, const std::string& cause, std::vector<NicChange>* changes);
  void FeedImpairments(Nic* nic, std::vector<NicChange>* changes);
  // The share that the NIC moves by the reports of jobs. One user's report counts for all if no other user has jobs here, or if another
  // user's report agrees.
  static uint32_t SlowShare(const Nic& nic);
  static std::string SlowReason(const Nic& nic);
  static std::string PathReason(const Nic& nic);
  void Advance(Nanos now, std::vector<NicChange>* changes);
  void UpdateSnapshot();

  const std::string node_;
  const NodePolicy policy_;
  std::vector<std::string> order_;  // NIC names as configured
  std::map<std::string, Nic> nics_;
  std::set<NicKey> dead_peers_;  // other nodes' NICs that have failed
  EvidenceLog log_;
  Nanos now_;
  NodeState snapshot_;
  uint64_t revision_ = 0;
  std::vector<std::string> ended_drills_;
};

// The status that sums up `nics`. `initializing`: there is no report of some link yet.
NodeStatus StatusFor(const std::vector<NicStatus>& nics, bool initializing);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NODE_HEALTH_H_
