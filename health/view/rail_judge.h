// Judges this node's NICs by its rail probes, and by where the matrix of all nodes' probes locates a fault: silent, broken paths,
// inconclusive. Pure: it asks for probes and reports evidence as values, and time is an argument.
#ifndef R2CC_HEALTH_VIEW_RAIL_JUDGE_H_
#define R2CC_HEALTH_VIEW_RAIL_JUDGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "health/evidence/evidence.h"
#include "health/evidence/pair_status.h"
#include "health/view/localise.h"
#include "health/view/rail_matrix.h"
#include "health/view/silence_report.h"

namespace r2cc::health {

// A path's fault must last this long before it is reported: while the pairs of a dying port fall silent one by one, each looks like a path.
constexpr Nanos kPathFaultHold = kNanosPerSecond;
// In addition this many probes over the path must have stayed unanswered meanwhile: earlier losses prove nothing now.
constexpr uint64_t kPathFaultProbes = 3;
// Reports do not outweigh facts: a NIC with an answered probe that is no older than this works, also against the reports of other nodes. A
// NIC that others report as silent is probed for this time before their reports count.
constexpr Nanos kFreshAnswer = 200 * kNanosPerMs;
// A verdict of silence stays for this time after its last witness is gone.
constexpr Nanos kAloneMax = 60 * kNanosPerSecond;
// An inconclusive silence is reported again at this interval while it lasts: the view forgets a report that is not repeated.
constexpr Nanos kInconclusiveInterval = 2 * kNanosPerSecond;

// An action that a judgement asks of the node. The order counts.
struct RailAction {
  enum class What : uint8_t {
    kReport,   // `evidence` about the NIC
    kChanged,  // what the node reports of its pairs has changed
    kSuspect,  // probe all pairs of the NIC at once
    kAsk,      // probe the pair of the NIC and `peer` at once
    kRenew,    // the NIC begins again: earlier answers and losses prove nothing
  };
  What what = What::kChanged;
  NicKey peer = {};        // of kAsk
  Evidence evidence = {};  // of kReport

  friend bool operator==(const RailAction&, const RailAction&) = default;
};

// One thread at a time.
class RailJudge {
 public:
  // `cabled`: the NICs of `node` that are cabled to another node without a switch.
  RailJudge(std::string node, std::set<std::string> cabled) : node_(std::move(node)), cabled_(std::move(cabled)) {}

  void Add(const std::string& nic) {
    verdicts_.try_emplace(nic);
    nics_.try_emplace(nic);
  }
  void Remove(const std::string& nic) {
    verdicts_.erase(nic);
    nics_.erase(nic);
  }

  // The known facts about the NIC's pairs.
  struct Seen {
    // The matrix of `pairs` and of the other nodes' reports, which verdicts() belongs to, locates it.
    Fault fault;
    // The node's own, of all its NICs, in order of their keys.
    const std::vector<RailPairStatus>& pairs;
    // Another node has sent something lately, by any way: it could receive from the NIC.
    bool others_alive = true;
  };
  // REQUIRES: the NIC was added, its link is up and its probes leave the machine.
  std::vector<RailAction> Judge(const std::string& nic, const Seen& seen, Nanos now);

  // The NIC's link is down. That is enough of a verdict.
  void LinkDown(const std::string& nic);
  // A peer's datagrams to the NIC are dropped here, so the peer gets no answer: others' reports count from `now` on.
  void PeerKeptOut(const std::string& nic, Nanos now) { nics_.at(nic).suspected_by_peers_since = now; }
  // Nothing is to be judged on any NIC: what was pending begins again.
  void Rest();
  // The other ends of the NIC's paths that lose large packets. True: others than before.
  bool SetLargeLost(const std::string& nic, std::set<NicKey> peers);

  // As reported, of all NICs.
  const RailFindings& verdicts() const { return verdicts_; }
  // A NIC is reported as silent, or a path as broken.
  bool AnyVerdict() const;
  // A pair is silent, or a verdict may be taken back: Judge() needs the matrix.
  bool AnythingToJudge(const std::vector<RailPairStatus>& pairs) const;

 private:
  struct PendingPath {
    Nanos since = 0;
    uint64_t sent = 0;  // probes of the pair until then
  };
  struct Nic {
    SilenceReport silence_report;                 // of its silence
    Nanos unanswered_since = 0;                   // it answers nobody, and not everybody was asked
    Nanos alone_since = 0;                        // it is silent, and no other node could receive from it
    Nanos suspected_by_peers_since = 0;           // since when it would be unusable by others' reports only
    std::map<NicKey, PendingPath> pending_paths;  // faults of paths that are pending or reported
    Nanos inconclusive_reported_at = 0;
    Nanos inconclusive_since = 0;
  };
  // One judgement.
  struct Turn;

  void JudgeSilence(Turn* turn);
  void JudgePaths(Turn* turn);
  void JudgeInconclusive(Turn* turn);
  // The fault rests on what this node's own probes of the NIC show. Otherwise it must not have been answered in spite of being probed.
  bool RestsOnFacts(Turn* turn) const;
  // The NIC carries nothing. If a peer was not asked since the silence began, and may still answer, the fault must last for kPathFaultHold.
  bool IsUnusable(Turn* turn) const;
  static bool AnybodyLeft(const Turn& turn);
  // Reports an inconclusive silence, and repeats the report while it lasts.
  static void ReportInconclusive(Turn* turn, const NicKey& peer, const std::string& text);

  const std::string node_;
  const std::set<std::string> cabled_;
  RailFindings verdicts_;
  std::map<std::string, Nic> nics_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_RAIL_JUDGE_H_
