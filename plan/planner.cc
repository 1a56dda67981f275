#include "plan/planner.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace r2cc::plan {
namespace {

bool MayCarry(PlannedState state) {
  switch (state) {
    case PlannedState::kHealthy:
    case PlannedState::kDegraded:
    case PlannedState::kSuspect: return true;
    case PlannedState::kFailed:
    case PlannedState::kProving:
    case PlannedState::kDrained:
    case PlannedState::kDrainedNow:
    case PlannedState::kUncabled: return false;
  }
  return false;
}

std::vector<std::string> DrainedJobs(const NicModel& nic) { return MayCarry(nic.state) ? nic.drained_jobs : std::vector<std::string>(); }

uint64_t BestRate(const NodeModel& node) {
  uint64_t best = 0;
  for (const NicModel& nic : node.nics) best = std::max(best, nic.rate_bits_per_s);
  return best;
}

// The rate of `nic` relative to the best NIC of its node. Not 0: that would forbid it.
uint16_t RatePermille(const NicModel& nic, uint64_t best_rate) {
  if (nic.rate_bits_per_s == 0 || best_rate == 0) return kFullWeightPermille;
  const double share = static_cast<double>(nic.rate_bits_per_s) / static_cast<double>(best_rate);
  return static_cast<uint16_t>(std::clamp(share * kFullWeightPermille, 1.0, double{kFullWeightPermille}));
}

uint16_t ReportedCeiling(const NicModel& nic) { return std::max(CapOfShare(nic.share_permille), kReportedWeightMinPermille); }

std::string InGbits(uint64_t bits_per_s) {
  const uint64_t tenths = (bits_per_s + 50'000'000) / 100'000'000;
  return std::to_string(tenths / 10) + (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + " Gbit/s";
}

std::vector<BrokenPath> ForbiddenPaths(const ClusterModel& cluster) {
  if (cluster.broken_paths.empty()) return {};
  std::set<std::pair<std::string, std::string>> carrying;
  for (const NodeModel& node : cluster.nodes)
    for (const NicModel& nic : node.nics)
      if (MayCarry(nic.state)) carrying.emplace(node.name, nic.name);
  std::set<BrokenPath> paths;
  for (const BrokenPath& path : cluster.broken_paths)
    if (path.node < path.peer_node && carrying.contains({path.node, path.nic}) && carrying.contains({path.peer_node, path.peer_nic}))
      paths.insert(path);
  std::vector<BrokenPath> forbidden(paths.begin(), paths.end());
  if (forbidden.size() > kBrokenPathsMax) forbidden.resize(kBrokenPathsMax);
  return forbidden;
}

// The part of `plan` for `node`.
auto NicsOf(const Plan& plan, const std::string& node) {
  const auto begin = std::partition_point(plan.nics.begin(), plan.nics.end(), [&](const PlannedNic& nic) { return nic.node < node; });
  const auto end = std::find_if(begin, plan.nics.end(), [&](const PlannedNic& nic) { return nic.node != node; });
  return std::pair(begin, end);
}

std::string Name(const PlannedNic& nic) { return nic.node + "/" + nic.nic; }

// A NIC of the model, by node and name.
using Key = std::pair<std::string_view, std::string_view>;
struct KeyHash {
  size_t operator()(const Key& key) const {
    return std::hash<std::string_view>()(key.first) * 31 + std::hash<std::string_view>()(key.second);
  }
};
struct Expected {
  const NicModel* model;
  uint64_t best_rate;  // of its node
  bool planned;
};

}  // namespace

Plan MakePlan(const ClusterModel& cluster, const Epoch& epoch) {
  Plan plan;
  plan.epoch = epoch;
  for (const NodeModel& node : cluster.nodes) {
    const uint64_t best_rate = BestRate(node);
    for (const NicModel& nic : node.nics) {
      const uint16_t cap =
          std::min({nic.operator_weight_permille, ReportedCeiling(nic), RatePermille(nic, best_rate), kFullWeightPermille});
      plan.nics.push_back({node.name, nic.name, nic.state, MayCarry(nic.state) ? cap : uint16_t{0}, DrainedJobs(nic), nic.on_purpose});
    }
  }
  plan.broken_paths = ForbiddenPaths(cluster);
  return plan;
}

std::string CheckPlan(const Plan& plan, const ClusterModel& cluster) {
  std::unordered_map<Key, Expected, KeyHash> expected;
  for (const NodeModel& node : cluster.nodes) {
    const uint64_t best_rate = BestRate(node);
    for (const NicModel& nic : node.nics)
      if (!expected.emplace(Key{node.name, nic.name}, Expected{&nic, best_rate, false}).second)
        return "the model has NIC " + node.name + "/" + nic.name + " twice";
  }
  for (const PlannedNic& nic : plan.nics) {
    const auto found = expected.find({nic.node, nic.nic});
    if (found == expected.end()) return "the plan speaks of NIC " + Name(nic) + ", which the model does not have";
    const NicModel& model = *found->second.model;
    if (std::exchange(found->second.planned, true)) return "the plan has NIC " + Name(nic) + " twice";
    if (nic.state != model.state) return "the plan has another state of NIC " + Name(nic) + " than the model";
    if (nic.drained_jobs != DrainedJobs(model)) return "the plan keeps other jobs off NIC " + Name(nic) + " than the operator";
    if (nic.on_purpose != model.on_purpose) return "the plan takes NIC " + Name(nic) + " away for another reason than the model";
    if (nic.weight_permille > kFullWeightPermille)
      return "the plan gives NIC " + Name(nic) + " weight " + std::to_string(nic.weight_permille) + ", more than " +
             std::to_string(kFullWeightPermille);
    if (nic.weight_permille > 0 && !MayCarry(model.state))
      return "the plan gives NIC " + Name(nic) + " weight " + std::to_string(nic.weight_permille) + " although it may not carry traffic";
    if (MayCarry(model.state) && nic.weight_permille < std::min({model.operator_weight_permille, kReportedWeightMinPermille,
                                                                 RatePermille(model, found->second.best_rate)}))
      return "the plan gives NIC " + Name(nic) + " weight " + std::to_string(nic.weight_permille) +
             ", less than anybody but the operator and its own rate may";
  }
  for (const NodeModel& node : cluster.nodes)
    for (const NicModel& nic : node.nics)
      if (!expected.at({node.name, nic.name}).planned) return "the plan leaves out NIC " + node.name + "/" + nic.name;
  if (plan.broken_paths != ForbiddenPaths(cluster)) return "the plan forbids other paths than those that the model calls broken";
  return "";
}

Plan PartOf(const Plan& plan, const ClusterModel& part) {
  Plan of = {plan.epoch, {}, plan.broken_paths};
  for (const NodeModel& node : part.nodes) {
    const auto [begin, end] = NicsOf(plan, node.name);
    of.nics.insert(of.nics.end(), begin, end);
  }
  return of;
}

Plan Replace(const Plan& plan, const ClusterModel& part, const Plan& planned) {
  Plan next = {planned.epoch, {}, planned.broken_paths};
  next.nics.reserve(plan.nics.size() + planned.nics.size());
  auto kept = plan.nics.begin();
  auto replaced = planned.nics.begin();
  for (const NodeModel& node : part.nodes) {
    const auto [begin, end] = NicsOf(plan, node.name);
    next.nics.insert(next.nics.end(), kept, begin);
    kept = end;
    for (; replaced != planned.nics.end() && replaced->node == node.name; ++replaced) next.nics.push_back(*replaced);
  }
  next.nics.insert(next.nics.end(), kept, plan.nics.end());
  return next;
}

namespace {

std::string ReasonForAll(const NodeModel& node, const NicModel& nic) {
  switch (nic.state) {
    case PlannedState::kFailed: return "failed: abandoned at once";
    case PlannedState::kProving: return "back, and not trusted yet";
    case PlannedState::kDrained: return "drained by the operator";
    case PlannedState::kDrainedNow: return "drained by the operator, at once";
    case PlannedState::kUncabled: return "no cable yet";
    default: break;
  }
  const uint64_t best_rate = BestRate(node);
  const uint16_t rate = RatePermille(nic, best_rate);
  const uint16_t least = std::min({nic.operator_weight_permille, rate, ReportedCeiling(nic)});
  if (least >= kFullWeightPermille) return "as much as any NIC of its node";
  if (least == nic.operator_weight_permille) return "limited by an operator";
  if (least == rate) return "runs at " + InGbits(nic.rate_bits_per_s) + ", the best of its node at " + InGbits(best_rate);
  return "jobs report that it moves " + std::to_string(nic.share_permille / 10) + "% of their best rail";
}

}  // namespace

std::string WeightReason(const NodeModel& node, const NicModel& nic) {
  std::string reason = ReasonForAll(node, nic);
  for (const std::string& job : DrainedJobs(nic)) reason += "; drained for job " + job;
  return reason;
}

}  // namespace r2cc::plan
