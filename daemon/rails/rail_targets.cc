#include "daemon/rails/rail_targets.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/core/hash.h"

namespace r2cc::daemon {
namespace {

// The limit of pairs that this node looks at for others.
constexpr uint32_t kNobody = UINT32_MAX;

// To whose account each node's pairs go, by a number: of those that talk to it the one with the fewest nodes, whose are probed most often.
std::map<std::string_view, uint32_t> UserOfNodes(const JobPeers& job_peers) {
  std::vector<std::pair<size_t, const std::set<std::string>*>> users;
  for (const auto& [share, nodes] : job_peers) users.emplace_back(nodes.size(), &nodes);
  std::stable_sort(users.begin(), users.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<std::string_view, uint32_t> user_of;
  for (uint32_t user = 0; user < users.size(); ++user)
    for (const std::string& node : *users[user].second) user_of.emplace(node, user);
  return user_of;
}

// The n-th active pair of each user comes before the n+1-th of any.
void TakeTurns(std::vector<health::RailTarget>* targets) {
  std::map<uint32_t, size_t> next;
  std::vector<std::pair<size_t, health::RailTarget>> ranked;
  for (health::RailTarget& target : *targets) {
    const size_t rank = target.active ? next[target.user]++ : SIZE_MAX;
    ranked.emplace_back(rank, std::move(target));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < ranked.size(); ++i) (*targets)[i] = std::move(ranked[i].second);
}

}  // namespace

const health::NicStatus* Partner(const std::vector<std::string>& nics, size_t i, const std::map<std::string, health::NicKey>& cables,
                                 const health::NodeState& peer) {
  const auto cable = cables.find(nics[i]);
  if (cable != cables.end() && cable->second.node != peer.node) return nullptr;
  const health::NicStatus* const other = peer.Find(cable != cables.end() ? cable->second.nic : nics[i]);
  return other == nullptr && i < peer.nics.size() ? &peer.nics[i] : other;
}

std::vector<health::RailTarget> ChooseRailTargets(const std::string& node, const std::vector<std::string>& nics,
                                                  const std::map<std::string, health::NicKey>& cables, const health::ClusterView& view,
                                                  const JobPeers& job_peers, const std::set<health::NicKey>& suspected) {
  // In an order of its own for each node, so that not everybody's auxiliary pairs lead to the same nodes.
  std::vector<std::pair<uint64_t, const health::NodeEntry*>> peers;
  for (const auto& [name, entry] : view.nodes())
    if (name != node && entry.state.probe_nonce != 0) peers.emplace_back(Fnv1a64(node + " " + name), &entry);
  std::sort(peers.begin(), peers.end());

  const std::map<std::string_view, uint32_t> user_of = UserOfNodes(job_peers);
  std::set<std::string_view> needed;
  for (const auto& [name, user] : user_of) needed.insert(name);
  for (const health::NicKey& nic : suspected) needed.insert(nic.node);
  std::map<uint32_t, size_t> active_of;  // by user
  std::vector<health::RailTarget> targets;
  size_t auxiliary = 0;
  for (const auto& [rank, entry] : peers) {
    const health::NodeState& peer = entry->state;
    if (auxiliary >= kAuxiliaryPairsMax && !needed.contains(peer.node)) continue;
    for (size_t i = 0; i < nics.size(); ++i) {
      const health::NicStatus* const other = Partner(nics, i, cables, peer);
      if (other == nullptr || other->probe_port == 0 || other->identity.address.empty()) continue;
      const health::NicKey key = {peer.node, other->identity.name};
      const auto user = user_of.find(peer.node);
      const bool asked = user != user_of.end() && active_of[user->second]++ < kActivePairsPerUserMax;
      const bool active = asked || suspected.contains(key);
      if (!active && auxiliary++ >= kAuxiliaryPairsMax) continue;
      health::RailTarget target = {{{node, nics[i]}, key}, other->identity.address, other->probe_port, peer.probe_nonce, active};
      target.user = asked ? user->second : kNobody;
      target.packet_max = other->probe_packet_max;
      targets.push_back(std::move(target));
    }
  }
  TakeTurns(&targets);
  return targets;
}

}  // namespace r2cc::daemon
