// The rail probes of this node: its sockets, the pairs to probe, and what the matrix of all nodes' probes means for this node's NICs.
#ifndef R2CC_DAEMON_RAILS_RAIL_WATCH_H_
#define R2CC_DAEMON_RAILS_RAIL_WATCH_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "daemon/core/job_peers.h"
#include "daemon/rails/large_watch.h"
#include "daemon/rails/rail_alarms.h"
#include "daemon/rails/rail_sockets.h"
#include "health/evidence/evidence.h"
#include "health/io/datagram.h"
#include "health/probe/rail_prober.h"
#include "health/view/cluster_view.h"
#include "health/view/localise.h"
#include "health/view/rail_judge.h"
#include "health/view/rail_matrix.h"

namespace r2cc::daemon {

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
    // The result of Report() has changed.
    std::function<void()> on_state;
    // A ping leaves; and the pairs that are probed from now on.
    std::function<void(const health::RailPing&)> on_ping = [](const auto&) {};
    std::function<void(const std::vector<health::RailTarget>&)> on_targets = [](const auto&) {};
  };

  // `new_secret`: makes up the keys of rail probes. `cables`: the other end of each NIC that is cabled to it without a switch. The view
  // outlives it.
  RailWatch(std::string node, std::vector<health::NicIdentity> nics, health::ProbeKeyring::NewSecret new_secret,
            std::map<std::string, health::NicKey> cables, const health::ClusterView* view, const Seams& seams, Outputs outputs);
  ~RailWatch();
  RailWatch(const RailWatch&) = delete;
  RailWatch& operator=(const RailWatch&) = delete;

  // Opens the sockets and begins. `port`: wanted for all of them; where it is taken another one serves.
  void Start(uint16_t port);
  void Stop();

  // The cluster's view changed.
  void OnView() {
    view_changed_ = true;
    if (std::exchange(hurried_changes_, view_->changes()) != view_->changes()) Hurry();
  }
  // The daemon of `node` sent something, directly and now.
  void NoteAlive(const std::string& node) {
    last_messages_[node] = seams_.executor->Now();
    prober_.NoteAlive(node, seams_.executor->Now());
  }
  void SetJobPeers(JobPeers peers);
  // One more NIC of this node, without a cable; and one that is none of its any more.
  void Add(health::NicIdentity identity) {
    Know(std::move(identity));
    targets_changed_ = true;
    Hurry();
  }
  void Remove(const std::string& nic) {
    std::erase(order_, nic);
    // Its pairs go first: nothing is sent from a socket that is not there.
    UpdateTargets();
    nics_.erase(nic);
    judge_.Remove(nic);
    large_.Forget(nic);
    sockets_.Remove(nic);
    Hurry();
  }
  // This node's NIC as its own kernel shows it.
  void SetLink(const std::string& nic, bool up);
  // The MTU of its interface; 0: not known.
  void SetMtu(const std::string& nic, uint32_t mtu);
  // This node's NIC has got another address.
  void SetAddress(const std::string& nic, const std::string& address) { sockets_.SetAddress(nic, address); }
  // Somebody complained about this node's NIC: its pairs are asked at once, with large packets, too. `peer`: the other end; may be empty.
  void Suspect(const std::string& nic, const health::NicKey& peer = {}) {
    prober_.Suspect(nic, given_up_, seams_.executor->Now());
    prober_.SuspectLarge(nic, peer, seams_.executor->Now());
    Hurry();
  }

  // A silence somewhere is being explained: others wait for this node's results.
  bool Inconclusive() const { return inconclusive_; }

  // The facts that other daemons need to probe this node and to compare pairs.
  health::RailReport Report() const;

  // The alarms for an operator.
  std::vector<RailAlarm> Alarms() const { return FindRailAlarms(AlarmFacts()); }

  // Judges this node's NICs by the present facts, and reports.
  void Judge();
  // The place of the fault, if there is one, by the present reports of all nodes. `nic`: of this node.
  health::Fault Verdict(const std::string& nic) const;
  // The same for large packets.
  health::LargeFault LargeVerdict(const std::string& nic) const;
  std::vector<health::RailPairStatus> Pairs() const { return prober_.Pairs(); }
  const health::RailProbeCounts& counts() const { return prober_.counts(); }
  const RailSockets& sockets() const { return sockets_; }
  // The other end of a direct cable; null: there is a switch.
  const health::NicKey* CableTo(const std::string& nic) const {
    const auto found = cables_.find(nic);
    return found == cables_.end() ? nullptr : &found->second;
  }

 private:
  struct Nic {
    health::NicIdentity identity;
    bool link_up = false;
    uint32_t mtu = 0;
  };

  void Know(health::NicIdentity identity);
  // Another node has sent something lately, by any way.
  bool OthersAlive() const;
  void Tick();
  // So that the next tick is not later than kRailProbeTick from now.
  void Hurry();
  // Sets the timer to the next time at which there is something to do, whenever that changes: a needless wake-up costs as much as a ping.
  void Arm();
  Nanos NextTick() const;
  void OnBatch(const std::string& nic, const std::vector<health::Datagram>& batch);
  RailAlarmFacts AlarmFacts() const;
  // Asks NICs that do not answer whether they are on another rail's network.
  void SeekCrossed();
  void UpdateSuspected();
  // Updates the set of nodes whose probes are accepted.
  void UpdatePeers();
  void UpdateGivenUp();
  void UpdateTargets();
  // Does what a judgement of the NIC asks for.
  void Do(const std::string& nic, const std::vector<health::RailAction>& actions);
  void JudgeLarge(const std::vector<health::RailPairStatus>& pairs);
  LargeWatch::Seen SeeLarge(const health::NicKey& nic, const std::vector<health::RailPairStatus>& pairs,
                            const health::ProbeMatrix& matrix) const;
  // A verdict changed, so the reports do.
  void OnVerdictChanged();
  void Emit(const std::string& nic, health::EvidenceKind kind, const std::string& detail);

  const std::string node_;
  const std::map<std::string, health::NicKey> cables_;
  const health::ClusterView* const view_;
  const Seams seams_;
  const Outputs outputs_;
  const health::RailMatrix matrix_;
  health::RailJudge judge_;
  std::map<std::string, Nic> nics_;
  std::vector<std::string> order_;
  health::ProbeKeyring keys_;
  health::RailProber prober_;
  RailSockets sockets_;
  LargeWatch large_;
  JobPeers job_peers_;
  health::RailMatrix::Suspected suspected_;
  std::set<health::NicKey> given_up_;  // other nodes' NICs
  bool inconclusive_ = false;          // as of the last judgement
  bool quiet_ = false;                 // nothing had to be judged
  bool view_changed_ = true;
  bool targets_changed_ = true;   // in addition to changes in the view
  uint64_t targeted_places_ = 0;  // of the view
  uint64_t seen_changes_ = 0;     // of the view, by UpdateGivenUp
  uint64_t known_changes_ = 0;    // the same, by UpdatePeers
  std::set<std::string> known_peers_;
  std::map<std::string, Nanos> last_messages_;  // by node of the view: when its daemon last sent something
  Nanos sought_crossed_ = 0;
  bool running_ = false;
  std::vector<uint64_t> taken_;  // own nonces that the sockets take probes to
  std::vector<health::RailTarget> targets_;
  // The latest reports and their inputs, so that they need not be made each time.
  struct Reported {
    uint64_t prober_revision = 0;
    uint64_t view_revision = 0;
    bool silent = false;  // a pair is: the view may explain that
    health::PairReports pairs;
  };
  mutable Reported reported_;
  uint64_t reported_revision_ = 0;
  Nanos judged_ = 0;
  TimerId timer_ = 0;
  Nanos tick_due_ = 0;
  Nanos ticked_ = 0;
  Nanos hurry_by_ = INT64_MAX;
  uint64_t hurried_changes_ = 0;  // of the view
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_RAIL_WATCH_H_
