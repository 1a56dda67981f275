// Combines all nodes' reports about their rail pairs: into the matrix for a verdict on this node's NICs, the node's own reports, and the
// silent pairs of others that it should probe. Pure: functions of the view, of this node's pairs and of what was reported about its NICs.
#ifndef R2CC_HEALTH_VIEW_RAIL_MATRIX_H_
#define R2CC_HEALTH_VIEW_RAIL_MATRIX_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "health/evidence/evidence.h"
#include "health/evidence/pair_status.h"
#include "health/view/cluster_view.h"
#include "health/view/localise.h"
#include "health/view/pair_reports.h"

namespace r2cc::health {

// A pair that has not answered for this time since its first probe, and for this many probes, perhaps never will.
constexpr Nanos kFirstAnswerWait = 3 * kNanosPerSecond;
constexpr uint64_t kFirstAnswerProbes = 5;

// The last report of this daemon about one of its own NICs.
struct RailFinding {
  bool silent = false;
  Nanos silent_since = 0;         // when that was reported
  bool port_dead = false;         // it is silent, and the fault is its port
  std::set<NicKey> broken_paths;  // the other ends
  std::set<NicKey> large_lost;    // the other ends of paths that lose large packets, wherever the fault is
};
using RailFindings = std::map<std::string, RailFinding>;  // by NIC; a NIC that is missing is sound

// The NIC's own kernel or daemon, or the operator, states that it is dead.
bool IsGivenUp(const NicStatus& nic);

// The present verdict of `pair`. An answer from before its own NIC fell silent does not count.
PairVerdict VerdictNow(const RailPairStatus& pair, const RailFindings& verdicts);

// The peers that never answered this NIC, though they answer others; none if anybody answers it. `pairs`: the node's own.
std::vector<NicKey> NeverAnswered(const std::string& nic, const std::vector<RailPairStatus>& pairs, Nanos now);

// One thread at a time.
class RailMatrix {
 public:
  // `cables`: the other end of each NIC of `node` that is cabled to it without a switch. `view` outlives it.
  RailMatrix(std::string node, std::map<std::string, NicKey> cables, const ClusterView* view);

  // For a verdict on the NICs of this node. `pairs`: its own.
  ProbeMatrix Matrix(const std::vector<RailPairStatus>& pairs, const RailFindings& verdicts) const;
  // The same for large packets: a pair that loses them is silent in it.
  ProbeMatrix LargeMatrix(const std::vector<RailPairStatus>& pairs) const;

  // This node's reports about its pairs, silent ones first. A pair is left out if it shows nothing, or if a dead port at either end
  // explains its silence. At most kPairReportsMax.
  PairReports Reports(std::vector<RailPairStatus> pairs, const RailFindings& verdicts) const;

  struct Suspected {
    std::set<NicKey> ports;  // ends of others' silent pairs: this node probes them, to distinguish the two ends
    bool here = false;       // others report that a pair with this node is silent, or loses large packets
  };
  Suspected FindSuspected() const;

  // This node is one of the few that look at the silent pair of `a` and `b`. All nodes choose the same few, without asking.
  bool Volunteers(const NicKey& a, const NicKey& b) const;

 private:
  // Both: of small or of large packets.
  enum class Question { kAnswers, kLarge };
  ProbeMatrix MatrixOf(Question question, const std::vector<RailPairStatus>& pairs, const RailFindings& verdicts) const;
  // Its own daemon reports that the NIC explains all silence around it.
  bool ExplainsSilence(const NicKey& nic) const;
  // Its node reports enough of its pairs that no other node need probe them.
  bool IsWellSeen(const NicKey& nic) const;

  const std::string node_;
  const std::map<std::string, NicKey> cables_;
  const ClusterView* const view_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_RAIL_MATRIX_H_
