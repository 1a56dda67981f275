#include "health/view/cluster_view.h"

#include <algorithm>
#include <cstdint>

namespace r2cc::health {

ClusterView::Merged ClusterView::Merge(const NodeState& state, Nanos now) {
  if (state.node == own_node_) return Merged::kOwn;
  const auto found = nodes_.find(state.node);
  if (found == nodes_.end()) {
    nodes_.emplace(state.node, NodeEntry{state, now, true});
    ++revision_;
    ++changes_;
    return Merged::kNew;
  }
  NodeEntry& entry = found->second;
  // No sign of life either: it may have been on its way since before the daemon died.
  if (state.epoch < entry.state.epoch) return Merged::kOutdated;
  Heard(state.node, now);
  if (state.epoch == entry.state.epoch) return Merged::kSame;
  if (!state.PlansAs(entry.state) || state.probe_nonce != entry.state.probe_nonce) ++revision_;
  entry.state = state;
  ++changes_;
  return Merged::kNew;
}

void ClusterView::SetOwn(const NodeState& state, Nanos now) {
  NodeEntry& entry = nodes_[own_node_];
  if (!state.PlansAs(entry.state)) ++revision_;
  entry = {state, now, true};
  ++changes_;
}

bool ClusterView::Heard(const std::string& node, Nanos now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  NodeEntry& entry = found->second;
  entry.heard = std::max(entry.heard, now);
  if (entry.reachable) return false;
  entry.reachable = true;
  ++revision_;
  ++changes_;
  return true;
}

std::vector<std::string> ClusterView::Tick(Nanos now) {
  std::vector<std::string> lost;
  for (auto& [node, entry] : nodes_) {
    if (node == own_node_ || !entry.reachable || now - entry.heard < lease_) continue;
    entry.reachable = false;
    ++revision_;
    ++changes_;
    lost.push_back(node);
  }
  return lost;
}

Nanos ClusterView::next_tick() const {
  Nanos next = INT64_MAX;
  for (const auto& [node, entry] : nodes_)
    if (node != own_node_ && entry.reachable) next = std::min(next, entry.heard + lease_);
  return next;
}

const NodeEntry* ClusterView::Find(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

const NicStatus* ClusterView::Find(const NicKey& nic) const {
  const NodeEntry* entry = Find(nic.node);
  return entry == nullptr ? nullptr : entry->state.Find(nic.nic);
}

NodeWord ClusterView::WordOf(const NodeEntry& entry) const { return entry.reachable ? entry.state.word : NodeWord::kUnreachable; }

}  // namespace r2cc::health
