#include "health/view/cluster_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/core/check.h"

namespace r2cc::health {

ClusterView::Merged ClusterView::Merge(NodeState state, Nanos now, std::optional<NodeState>* before) {
  if (state.node == own_node_) return Merged::kOwn;
  const auto [found, fresh] = nodes_.try_emplace(state.node);
  NodeEntry& entry = found->second;
  if (fresh) {
    entry.last_received = now;
    entry.state.node = state.node;
  } else {
    // No sign of life either: it may have been on its way since before the daemon died.
    if (entry.state.epoch.LaterThan(state.epoch)) return Merged::kOutdated;
    NoteAlive(state.node, now);
    if (state.epoch == entry.state.epoch) return Merged::kSame;
  }
  Set(&entry, &state, fresh);
  if (before != nullptr) *before = fresh ? std::nullopt : std::optional(std::move(state));
  return Merged::kNew;
}

void ClusterView::SetOwn(NodeState state, Nanos now) {
  const auto [own, fresh] = nodes_.try_emplace(own_node_);
  own->second.last_received = now;
  Set(&own->second, &state, fresh);
}

void ClusterView::Set(NodeEntry* entry, NodeState* state, bool fresh) {
  const bool moved = fresh || !state->ProbedAs(entry->state);
  if (moved) ++places_;
  const bool verdict = fresh || moved || !state->PlansAs(entry->state);
  std::swap(entry->state, *state);
  Note(entry, verdict);
}

void ClusterView::Note(NodeEntry* entry, bool verdict) {
  if (verdict) entry->revision = ++revision_;
  entry->changes = ++changes_;
}

bool ClusterView::NoteAlive(const std::string& node, Nanos now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  NodeEntry& entry = found->second;
  entry.last_received = std::max(entry.last_received, now);
  if (entry.reachable) return false;
  entry.reachable = true;
  Note(&entry, /*verdict=*/true);
  return true;
}

std::vector<std::string> ClusterView::Tick(Nanos now, const std::function<bool(const std::string& node)>& is_alive) {
  std::vector<std::string> lost;
  if (now < lease_due_) return lost;
  lease_due_ = now + lease_;
  for (auto& [node, entry] : nodes_) {
    if (!entry.reachable || node == own_node_) continue;
    if (now - entry.last_received >= lease_ && is_alive != nullptr && is_alive(node)) entry.last_received = now;
    if (now - entry.last_received < lease_) {
      lease_due_ = std::min(lease_due_, entry.last_received + lease_);
      continue;
    }
    entry.reachable = false;
    Note(&entry, /*verdict=*/true);
    lost.push_back(node);
  }
  return lost;
}

void ClusterView::Forget(const std::string& node) {
  R2CC_CHECK(node != own_node_);
  if (nodes_.erase(node) == 0) return;
  ++revision_;
  ++places_;
  ++changes_;
  ++forgotten_;
}

std::vector<std::string> ClusterView::SilentSince(Nanos when) const {
  std::vector<std::pair<Nanos, std::string>> silent;
  for (const auto& [node, entry] : nodes_)
    if (!entry.reachable && entry.last_received < when) silent.emplace_back(entry.last_received, node);
  std::sort(silent.begin(), silent.end());
  std::vector<std::string> names;
  for (auto& [last_received, node] : silent) names.push_back(std::move(node));
  return names;
}

const NodeEntry* ClusterView::Find(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

const NicStatus* ClusterView::Find(const NicKey& nic) const {
  const NodeEntry* entry = Find(nic.node);
  return entry == nullptr ? nullptr : entry->state.Find(nic.nic);
}

NodeStatus ClusterView::StatusOf(const NodeEntry& entry) const { return entry.reachable ? entry.state.status : NodeStatus::kUnreachable; }

}  // namespace r2cc::health
