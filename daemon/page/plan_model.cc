#include "daemon/page/plan_model.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/convert.h"

namespace r2cc::daemon {
namespace {

constexpr int kChangesShown = 4;

plan::PlannedState PlannedState(const health::NicStatus& nic) {
  return nic.state == health::NicState::kDrained && nic.drained_now ? plan::PlannedState::kDrainedNow : ToPlan(nic.state);
}

std::string Describe(const plan::PlannedNic& nic) {
  return absl::StrCat(v1::NicState_Name(ToProto(nic.state)), nic.state == plan::PlannedState::kDrainedNow ? " at once " : " ",
                      nic.weight_permille / 10.0, "%",
                      nic.drained_jobs.empty() ? "" : absl::StrCat(" drained for job ", absl::StrJoin(nic.drained_jobs, ", ")));
}

}  // namespace

plan::ClusterModel ToModel(const health::ClusterView& view, uint64_t since, const PageScope& scope, const std::string& own_node) {
  plan::ClusterModel model;
  std::set<std::string> ends;
  const auto take_paths = [&](const std::string& name, const health::NodeEntry& entry) {
    if (entry.state.pairs.broken() == 0) return;
    size_t taken = 0;
    for (const health::PairReport& pair : entry.state.pairs) {
      if (!pair.broken || !scope.Holds(name) || !scope.Holds(pair.peer.node)) continue;
      if (taken++ >= kBrokenPathsPerNodeMax || model.broken_paths.size() >= plan::kBrokenPathsMax) return;
      const bool first = name < pair.peer.node;
      const health::NicKey own = {name, pair.nic};
      const health::NicKey& a = first ? own : pair.peer;
      const health::NicKey& b = first ? pair.peer : own;
      model.broken_paths.push_back({a.node, a.nic, b.node, b.nic});
      ends.insert({a.node, b.node});
    }
  };
  if (const health::NodeEntry* const own = view.Find(own_node); own != nullptr) take_paths(own_node, *own);
  for (const auto& [name, entry] : view.nodes())
    if (name != own_node) take_paths(name, entry);
  for (const auto& [name, entry] : view.nodes()) {
    if (!scope.Holds(name) || (entry.revision <= since && !ends.contains(name))) continue;
    plan::NodeModel& node = model.nodes.emplace_back(plan::NodeModel{name, {}});
    for (const auto& nic : entry.state.nics)
      node.nics.push_back({nic.identity.name, PlannedState(nic), nic.rate_bits_per_s, nic.operator_weight_permille, nic.share_permille,
                           nic.drained_jobs, nic.on_purpose()});
  }
  return model;
}

std::vector<plan::GpuModel> ToGpuModels(const health::NodeTopology& topology, const health::NodeState& own,
                                        const std::vector<plan::PlannedNic>& planned) {
  std::vector<plan::GpuModel> gpus;
  for (size_t g = 0; g < topology.gpus.size(); ++g) {
    plan::GpuModel& gpu = gpus.emplace_back(plan::GpuModel{topology.gpus[g].pci, {}});
    for (const plan::PlannedNic& nic : planned) {
      const health::NicStatus* status = own.Find(nic.nic);
      uint8_t distance = plan::kDistanceUnknown;
      for (size_t n = 0; n < topology.nics.size() && status != nullptr && !status->identity.pci.empty(); ++n)
        if (topology.nics[n].pci == status->identity.pci) distance = static_cast<uint8_t>(topology.gpu_to_nic[g][n]);
      gpu.distances.push_back(distance);
    }
  }
  return gpus;
}

v1::Plan ToProto(const plan::Plan& plan) {
  v1::Plan out;
  *out.mutable_epoch() = ToProto(plan.epoch);
  for (const auto& nic : plan.nics) {
    auto* planned = out.add_nics();
    planned->set_node(nic.node);
    planned->set_nic(nic.nic);
    planned->set_state(ToProto(nic.state));
    planned->set_weight_permille(nic.weight_permille);
    for (const std::string& job : nic.drained_jobs) planned->add_drained_jobs(job);
  }
  for (const auto& path : plan.broken_paths) {
    auto* broken = out.add_broken_paths();
    broken->set_node(path.node);
    broken->set_nic(path.nic);
    broken->set_peer_node(path.peer_node);
    broken->set_peer_nic(path.peer_nic);
  }
  return out;
}

std::string DescribeChange(const plan::Plan& before, const plan::Plan& after) {
  using Key = std::pair<std::string_view, std::string_view>;
  absl::flat_hash_map<Key, const plan::PlannedNic*> old;
  old.reserve(before.nics.size());
  for (const auto& nic : before.nics) old[{nic.node, nic.nic}] = &nic;
  std::string text;
  int changes = 0;
  const auto add = [&](const std::string& change) {
    if (++changes <= kChangesShown) absl::StrAppend(&text, text.empty() ? "" : ", ", change);
  };
  for (const auto& nic : after.nics) {
    const auto found = old.find(Key{nic.node, nic.nic});
    if (found == old.end()) {
      add(absl::StrCat(nic.node, "/", nic.nic, " ", Describe(nic), " (new)"));
      continue;
    }
    if (!(*found->second == nic)) add(absl::StrCat(nic.node, "/", nic.nic, " ", Describe(nic), " (was ", Describe(*found->second), ")"));
    old.erase(found);
  }
  for (const auto& nic : before.nics)
    if (old.contains(Key{nic.node, nic.nic})) add(absl::StrCat(nic.node, "/", nic.nic, " gone"));
  const auto add_paths = [&](const plan::Plan& in, const plan::Plan& not_in, const char* what) {
    for (const auto& path : in.broken_paths)
      if (!std::binary_search(not_in.broken_paths.begin(), not_in.broken_paths.end(), path))
        add(absl::StrCat("path ", path.node, "/", path.nic, " to ", path.peer_node, "/", path.peer_nic, what));
  };
  add_paths(after, before, " forbidden");
  add_paths(before, after, " allowed again");
  if (changes > kChangesShown) absl::StrAppend(&text, " and ", changes - kChangesShown, " more");
  return text;
}

}  // namespace r2cc::daemon
