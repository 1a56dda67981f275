#include "daemon/page/page_scope.h"

#include <utility>
#include <vector>

namespace r2cc::daemon {
namespace {

// The jobs' nodes, users in turn. Some may stand there several times.
std::vector<std::string> InTurn(const JobPeers& job_peers) {
  std::vector<std::pair<std::set<std::string>::const_iterator, std::set<std::string>::const_iterator>> left;
  for (const auto& [user, peers] : job_peers) left.emplace_back(peers.begin(), peers.end());
  std::vector<std::string> nodes;
  while (!left.empty()) {
    std::erase_if(left, [](const auto& range) { return range.first == range.second; });
    for (auto& [next, end] : left) nodes.push_back(*next++);
  }
  return nodes;
}

}  // namespace

PageScope ChooseScope(const health::ClusterView& view, const std::string& own_node, const JobPeers& job_peers, size_t nics_max) {
  size_t nics = 0;
  for (const auto& [name, entry] : view.nodes()) nics += entry.state.nics.size();
  PageScope scope;
  if (nics <= nics_max) return scope;

  scope.all = false;
  size_t room = nics_max;
  const auto take = [&](const std::string& name) {
    const health::NodeEntry* const entry = view.Find(name);
    if (entry == nullptr || scope.nodes.contains(name)) return;
    if (entry->state.nics.size() > room) {
      ++scope.left_out;
      return;
    }
    room -= entry->state.nics.size();
    scope.nodes.insert(name);
  };
  take(own_node);
  for (const std::string& name : InTurn(job_peers)) take(name);
  scope.left_out_of_jobs = scope.left_out;
  scope.left_out = 0;
  for (const auto& [name, entry] : view.nodes()) take(name);
  return scope;
}

}  // namespace r2cc::daemon
