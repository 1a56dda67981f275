#include "plan/planner.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace r2cc::plan {
namespace {

bool MayCarry(NicState state) {
  switch (state) {
    case NicState::kHealthy:
    case NicState::kDegraded:
    case NicState::kSuspect: return true;
    case NicState::kFailed:
    case NicState::kProving:
    case NicState::kDrained: return false;
  }
  return false;
}

std::string Name(const PlannedNic& nic) { return nic.node + "/" + nic.nic; }

}  // namespace

Plan MakePlan(const ClusterModel& cluster, const Epoch& epoch) {
  Plan plan;
  plan.epoch = epoch;
  for (const NodeModel& node : cluster.nodes)
    for (const NicModel& nic : node.nics) {
      const uint16_t reported = std::max(nic.share_permille, kReportedWeightMinPermille);
      const uint16_t ceiling = std::min({nic.operator_weight_permille, reported, kFullWeightPermille});
      plan.nics.push_back({node.name, nic.name, nic.state, MayCarry(nic.state) ? ceiling : uint16_t{0}});
    }
  return plan;
}

std::string CheckPlan(const Plan& plan, const ClusterModel& cluster) {
  std::map<std::pair<std::string, std::string>, const NicModel*> expected;
  for (const NodeModel& node : cluster.nodes)
    for (const NicModel& nic : node.nics)
      if (!expected.emplace(std::pair(node.name, nic.name), &nic).second)
        return "the model has NIC " + node.name + "/" + nic.name + " twice";
  std::set<std::pair<std::string, std::string>> planned;
  for (const PlannedNic& nic : plan.nics) {
    const auto model = expected.find({nic.node, nic.nic});
    if (model == expected.end()) return "the plan speaks of NIC " + Name(nic) + ", which the model does not have";
    if (!planned.emplace(nic.node, nic.nic).second) return "the plan has NIC " + Name(nic) + " twice";
    if (nic.state != model->second->state) return "the plan has another state of NIC " + Name(nic) + " than the model";
    if (nic.weight_permille > kFullWeightPermille)
      return "the plan gives NIC " + Name(nic) + " weight " + std::to_string(nic.weight_permille) + ", more than " +
             std::to_string(kFullWeightPermille);
    if (nic.weight_permille > 0 && !MayCarry(model->second->state))
      return "the plan gives NIC " + Name(nic) + " weight " + std::to_string(nic.weight_permille) + " although it may not carry traffic";
    if (MayCarry(model->second->state) &&
        nic.weight_permille < std::min(model->second->operator_weight_permille, kReportedWeightMinPermille))
      return "the plan gives NIC " + Name(nic) + " weight " + std::to_string(nic.weight_permille) +
             ", less than anybody but the operator may";
  }
  for (const auto& [key, model] : expected)
    if (!planned.contains(key)) return "the plan leaves out NIC " + key.first + "/" + key.second;
  return "";
}

}  // namespace r2cc::plan
