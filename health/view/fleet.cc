#include "health/view/fleet.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::health {
namespace {

constexpr char kAllNodes[] = "all nodes";

bool IsBad(const NicStatus& nic) {
  const bool by_operator = nic.drill_failed || nic.drained || nic.operator_weight_permille == 0;
  return !by_operator && (nic.state == NicState::kFailed || nic.state == NicState::kDegraded);
}

// n2 before n10.
bool Before(const std::string& a, const std::string& b) {
  size_t i = 0, k = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && k < b.size()) {
    if (!digit(a[i]) || !digit(b[k])) {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i, ++k;
      continue;
    }
    size_t i_end = i, k_end = k;
    while (i_end < a.size() && digit(a[i_end])) ++i_end;
    while (k_end < b.size() && digit(b[k_end])) ++k_end;
    while (i + 1 < i_end && a[i] == '0') ++i;
    while (k + 1 < k_end && b[k] == '0') ++k;
    if (i_end - i != k_end - k) return i_end - i < k_end - k;
    const int order = a.compare(i, i_end - i, b, k, k_end - k);
    if (order != 0) return order < 0;
    i = i_end, k = k_end;
  }
  return std::pair(a.size() - i, a) < std::pair(b.size() - k, b);
}

// By the name of a NIC (empty: all of a node): whether it is bad on each node that has it.
using Nodes = std::vector<std::pair<std::string, bool>>;

size_t BadOf(const Nodes& nodes) {
  return static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.second; }));
}

bool MostOf(const Nodes& nodes, size_t bad) { return bad >= kFleetNodesMin && 2 * bad > nodes.size(); }

// The common part of the bad nodes, in the order of their names.
std::vector<FleetFault> PartsOf(const std::string& nic, const Nodes& nodes) {
  const size_t bad = BadOf(nodes);
  if (MostOf(nodes, bad)) return {{nic, kAllNodes, bad, nodes.size()}};
  std::map<std::string, Nodes> racks;
  for (const auto& node : nodes) racks[RackOf(node.first)].push_back(node);
  std::vector<FleetFault> found;
  Nodes others;
  for (const auto& [rack, members] : racks) {
    const size_t bad_there = BadOf(members);
    if (!rack.empty() && MostOf(members, bad_there))
      found.push_back({nic, rack, bad_there, members.size()});
    else if (rack.empty())
      others = members;
  }
  const size_t bad_others = BadOf(others);
  if (bad_others < kFleetNodesMin) return found;
  const auto is_bad = [](const auto& node) { return node.second; };
  const auto first = std::find_if(others.begin(), others.end(), is_bad);
  const auto last = std::find_if(others.rbegin(), others.rend(), is_bad).base();
  const auto span = static_cast<size_t>(last - first);
  if (4 * bad_others >= 3 * span) found.push_back({nic, absl::StrCat(first->first, " to ", std::prev(last)->first), bad_others, span});
  return found;
}

}  // namespace

std::string RackOf(const std::string& node) {
  const std::string name = node.substr(0, node.find('.'));
  const size_t end = name.find_last_of("-_");
  return end == std::string::npos || end == 0 ? "" : name.substr(0, end);
}

std::vector<FleetFault> FindFleetFaults(const ClusterView& view) {
  std::vector<const NodeEntry*> entries;
  for (const auto& [name, entry] : view.nodes())
    if (view.StatusOf(entry) != NodeStatus::kUnreachable && !entry.state.nics.empty()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](const NodeEntry* a, const NodeEntry* b) { return Before(a->state.node, b->state.node); });
  std::map<std::string, Nodes> by_nic;
  for (const NodeEntry* const entry : entries) {
    const auto bad = std::count_if(entry->state.nics.begin(), entry->state.nics.end(), IsBad);
    const bool all = entry->state.nics.size() > 1 && bad == static_cast<ptrdiff_t>(entry->state.nics.size());
    by_nic[""].emplace_back(entry->state.node, all);
    if (all) continue;
    for (const NicStatus& nic : entry->state.nics) by_nic[nic.identity.name].emplace_back(entry->state.node, IsBad(nic));
  }
  std::vector<FleetFault> found;
  for (const auto& [nic, nodes] : by_nic)
    if (BadOf(nodes) >= kFleetNodesMin)
      for (FleetFault& fault : PartsOf(nic, nodes)) found.push_back(std::move(fault));
  std::stable_sort(found.begin(), found.end(), [](const FleetFault& a, const FleetFault& b) { return a.bad > b.bad; });
  if (found.size() > kFleetFaultsMax) found.resize(kFleetFaultsMax);
  return found;
}

std::string FleetText(const FleetFault& fault) {
  const bool all = fault.nic.empty();
  const std::string nic = all ? "each NIC" : fault.nic;
  const std::string part = fault.where == kAllNodes ? "nodes" : absl::StrCat("nodes of ", fault.where);
  return absl::StrCat(nic, " is bad on ", fault.bad, " of ", fault.nodes, " ", part, ": look at ",
                      all                        ? "what these nodes share: power, or the switches of all rails"
                      : fault.where == kAllNodes ? "the switches of this rail"
                                                 : "its leaf switch there");
}

}  // namespace r2cc::health
