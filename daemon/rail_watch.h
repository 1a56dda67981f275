// The rail probes of this node: its sockets, the pairs to probe, and what the matrix of all nodes' probes means for this node's NICs.
#ifndef R2CC_DAEMON_RAIL_WATCH_H_
#define R2CC_DAEMON_RAIL_WATCH_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "health/evidence/evidence.h"
#include "health/io/datagram.h"
#include "health/probe/rail_prober.h"
#include "health/view/cluster_view.h"
#include "health/view/localise.h"

namespace r2cc::daemon {

// A path's fault must last so long before it is told: while the pairs of a dying port fall silent one by one, each looks like a path.
constexpr Nanos kPathFaultHold = kNanosPerSecond;
// A pair that has not answered for so long since it was first probed, and so many probes, perhaps never will.
constexpr Nanos kFirstAnswerWait = 3 * kNanosPerSecond;
constexpr uint64_t kFirstAnswerProbes = 5;

// The core's thread only.
class RailWatch {
 public:
  struct Seams {
    Executor* executor;
    health::Datagrams* datagrams;
  };
  struct Outputs {
    // About this node's NICs.
    std::function<void(const health::Evidence&)> evidence;
    // What Fill says has changed.
    std::function<void()> on_state;
  };

  // `nonce`: made up anew in each life. `cables`: the other end of each NIC that is cabled to it without a switch. The view outlives it.
  RailWatch(std::string node, std::vector<health::NicIdentity> nics, uint64_t nonce, std::map<std::string, health::NicKey> cables,
            const health::ClusterView* view, const Seams& seams, Outputs outputs);
  ~RailWatch();
  RailWatch(const RailWatch&) = delete;
  RailWatch& operator=(const RailWatch&) = delete;

  // Opens the sockets and begins. `port`: wanted for all of them; where it is taken another one serves.
  void Start(uint16_t port);
  void Stop();

  // The cluster's view changed.
  void OnView() { view_changed_ = true; }
  // The daemon of `node` said something, directly and now.
  void Heard(const std::string& node) { prober_.Heard(node, seams_.executor->Now()); }
  // The nodes that jobs of this node talk to.
  void SetJobPeers(std::set<std::string> nodes);
  // This node's NIC as its own kernel shows it.
  void SetLink(const std::string& nic, bool up);
  // Somebody complained about this node's NIC.
  void Suspect(const std::string& nic);

  // Adds to this node's word about itself what other daemons need to probe it and to compare pairs.
  void Fill(health::NodeState* own) const;

  // Where the fault is, if there is one, by what all nodes say now. `nic`: of any node.
  health::Fault Verdict(const health::NicKey& nic) const { return health::Localise(Matrix(), nic); }
  std::vector<health::RailPairStatus> Pairs() const { return prober_.Pairs(); }
  const health::RailProbeCounts& counts() const { return prober_.counts(); }
  // The other end of a direct cable; null: there is a switch.
  const health::NicKey* CableTo(const std::string& nic) const;

 private:
  struct Nic {
    health::NicIdentity identity;
    bool link_up = false;
    std::unique_ptr<health::RailSocket> socket;
    bool silent = false;                         // as last told
    std::map<health::NicKey, Nanos> path_since;  // of faults of paths that are held or told
    std::set<health::NicKey> paths_told;
    Nanos doubt_told = 0;
    Nanos doubt_since = 0;
  };

  void Tick();
  void OpenSockets();
  void OnBatch(const std::string& nic, const std::vector<health::Datagram>& batch);
  void UpdateTargets();
  bool Volunteers(const health::NicKey& a, const health::NicKey& b) const;
  health::ProbeMatrix Matrix() const;
  void Judge();
  // There is a silent pair to be explained, or a verdict to be taken back. Otherwise the matrix, which is large in a large cluster, need
  // not be made.
  bool AnythingToJudge(const std::vector<health::RailPairStatus>& pairs) const;
  void JudgeNic(Nic* nic, const health::ProbeMatrix& matrix, const std::vector<health::RailPairStatus>& pairs);
  void JudgePaths(Nic* nic, const health::Fault& fault);
  void JudgeDoubt(Nic* nic, const health::NicKey& peer, const std::string& doubt);
  // The peers that never answered this NIC, though they answer others.
  std::vector<health::NicKey> NeverHeard(const std::string& nic, const std::vector<health::RailPairStatus>& pairs) const;
  void Tell(const Nic& nic, health::EvidenceKind kind, const health::NicKey& peer, const std::string& detail);

  const std::string node_;
  const std::map<std::string, health::NicKey> cables_;
  const health::ClusterView* const view_;
  const Seams seams_;
  const Outputs outputs_;
  std::map<std::string, Nic> nics_;
  std::vector<std::string> order_;
  health::RailProber prober_;
  std::set<std::string> job_peers_;
  std::set<health::NicKey> accused_;  // ports of others' silent pairs that this node lends its eyes for
  bool accused_here_ = false;         // others say that a pair with this node is silent
  uint16_t port_ = 0;
  bool view_changed_ = true;
  bool running_ = false;
  std::vector<health::RailTarget> targets_;
  uint64_t told_revision_ = 0;
  Nanos judged_ = 0;
  Nanos opened_ = 0;
  TimerId timer_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAIL_WATCH_H_
