#include "daemon/rails/rail_targets.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/core/hash.h"

namespace r2cc::daemon {

std::vector<health::RailTarget> ChooseRailTargets(const std::string& node, const std::vector<std::string>& nics,
                                                  const std::map<std::string, health::NicKey>& cables, const health::ClusterView& view,
                                                  const std::set<std::string>& job_peers, const std::set<health::NicKey>& accused) {
  // In an order of its own for each node, so that not everybody's auxiliary pairs lead to the same nodes.
  std::vector<std::pair<uint64_t, const health::NodeEntry*>> peers;
  for (const auto& [name, entry] : view.nodes())
    if (name != node && entry.state.probe_nonce != 0) peers.emplace_back(Fnv1a64(node + " " + name), &entry);
  std::sort(peers.begin(), peers.end());

  std::set<std::string_view> needed(job_peers.begin(), job_peers.end());
  for (const health::NicKey& nic : accused) needed.insert(nic.node);
  std::vector<health::RailTarget> targets;
  size_t auxiliary = 0;
  for (const auto& [rank, entry] : peers) {
    const health::NodeState& peer = entry->state;
    if (auxiliary >= kAuxiliaryPairsMax && !needed.contains(peer.node)) continue;
    for (size_t i = 0; i < nics.size(); ++i) {
      const auto cable = cables.find(nics[i]);
      if (cable != cables.end() && cable->second.node != peer.node) continue;
      // The same rail has the same name everywhere, or at least the same place in the order.
      const health::NicStatus* other = peer.Find(cable != cables.end() ? cable->second.nic : nics[i]);
      if (other == nullptr && i < peer.nics.size()) other = &peer.nics[i];
      if (other == nullptr || other->probe_port == 0 || other->identity.address.empty()) continue;
      const health::NicKey key = {peer.node, other->identity.name};
      const bool active = job_peers.contains(peer.node) || accused.contains(key);
      if (!active && auxiliary++ >= kAuxiliaryPairsMax) continue;
      targets.push_back({{{node, nics[i]}, key}, other->identity.address, other->probe_port, peer.probe_nonce, active});
    }
  }
  return targets;
}

}  // namespace r2cc::daemon
