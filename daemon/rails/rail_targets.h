// Chooses the rail pairs that a node probes: by the view, by its jobs and by the silent pairs of others. A pure function.
#ifndef R2CC_DAEMON_RAILS_RAIL_TARGETS_H_
#define R2CC_DAEMON_RAILS_RAIL_TARGETS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/core/job_peers.h"
#include "health/evidence/evidence.h"
#include "health/probe/rail_prober.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// Pairs that no job uses, probed in turn. Few enough for each to have its turn within seconds.
constexpr size_t kAuxiliaryPairsMax = 256;
// Pairs of one user's jobs that are active; those beyond are probed in turn with the others.
constexpr size_t kActivePairsPerUserMax = health::kRailPairsMax - kAuxiliaryPairsMax;

// The NIC of `peer` that the i-th of `nics` is joined with: the other end of its cable, or the NIC of the same rail. That has the same name
// everywhere, or at least the same place in the order. Null: there is none.
const health::NicStatus* Partner(const std::vector<std::string>& nics, size_t i, const std::map<std::string, health::NicKey>& cables,
                                 const health::NodeState& peer);

// A target joins a NIC of `node` with the other end of its cable, or, if it has none in `cables`, with the NIC of the same rail on each
// other node. `nics`: of `node`, in order. Active targets lead to a node of `job_peers` or to a NIC of `suspected`; there are at most
// kAuxiliaryPairsMax of the others. Active ones of different users alternate, so that the first kRailPairsMax are shared among these.
std::vector<health::RailTarget> ChooseRailTargets(const std::string& node, const std::vector<std::string>& nics,
                                                  const std::map<std::string, health::NicKey>& cables, const health::ClusterView& view,
                                                  const JobPeers& job_peers, const std::set<health::NicKey>& suspected);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_RAIL_TARGETS_H_
