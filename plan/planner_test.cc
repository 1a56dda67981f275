#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace r2cc::plan {
namespace {

constexpr PlannedState kStates[] = {PlannedState::kHealthy, PlannedState::kDegraded, PlannedState::kSuspect,
                                    PlannedState::kFailed,  PlannedState::kProving,  PlannedState::kDrained};
constexpr uint16_t kWeights[] = {0, 1, 250, 999, 1000};
constexpr Epoch kEpoch = {.incarnation = 1, .counter = 3};

ClusterModel OneNode(const std::vector<NicModel>& nics) { return {{{"n0", nics}}}; }

// The contract for one NIC, written down once more.
uint16_t Expected(const NicModel& nic) {
  const bool out = nic.state == PlannedState::kFailed || nic.state == PlannedState::kProving || nic.state == PlannedState::kDrained;
  if (out) return 0;
  const int reported = std::clamp(nic.share_permille + 100, 500, 1000);
  return static_cast<uint16_t>(std::min<int>(nic.operator_weight_permille, reported));
}

void ExpectRightPlan(const ClusterModel& cluster) {
  const Plan plan = MakePlan(cluster, kEpoch);
  ASSERT_EQ(plan.epoch, kEpoch);
  ASSERT_EQ(CheckPlan(plan, cluster), "");
  size_t next = 0;
  for (const NodeModel& node : cluster.nodes)
    for (const NicModel& nic : node.nics) {
      ASSERT_LT(next, plan.nics.size());
      const PlannedNic expected = {node.name, nic.name, nic.state, Expected(nic)};
      ASSERT_EQ(plan.nics[next++], expected);
    }
  ASSERT_EQ(next, plan.nics.size());
}

// Goal: the whole contract for small clusters. Method: every state and weight of 3 NICs of a node, every state of 2 NICs of 2 nodes.
TEST(Planner, EveryStateAndWeightOfOneNode) {
  std::vector<NicModel> kinds;
  for (const PlannedState state : kStates)
    for (const uint16_t weight : kWeights) kinds.push_back({"", state, 0, weight});
  for (NicModel a : kinds)
    for (NicModel b : kinds)
      for (NicModel c : kinds) {
        a.name = "r0";
        b.name = "r1";
        c.name = "r2";
        ASSERT_NO_FATAL_FAILURE(ExpectRightPlan(OneNode({a, b, c})));
      }
}

TEST(Planner, EveryStateOfTwoNodes) {
  for (const PlannedState a : kStates)
    for (const PlannedState b : kStates)
      for (const PlannedState c : kStates)
        for (const PlannedState d : kStates)
          ASSERT_NO_FATAL_FAILURE(
              ExpectRightPlan({{{"n0", {{"r0", a, 0, 1000}, {"r1", b, 0, 500}}}, {"n1", {{"r0", c, 0, 1000}, {"r1", d, 0, 1}}}}}));
}

// Goal: jobs' reports lower a weight, within the operator's, and one tenant's word alone takes no more than half of it.
TEST(Planner, EveryShareUnderEveryWeight) {
  for (const PlannedState state : kStates)
    for (const uint16_t weight : kWeights)
      for (const uint16_t share : {0, 1, 249, 499, 500, 501, 750, 999, 1000})
        ASSERT_NO_FATAL_FAILURE(ExpectRightPlan(OneNode({{"r0", state, 0, weight, share}, {"r1"}})));
  EXPECT_EQ(MakePlan(OneNode({{"r0", PlannedState::kDegraded, 0, 1000, 250}}), kEpoch).nics[0].weight_permille, 500);
  EXPECT_EQ(MakePlan(OneNode({{"r0", PlannedState::kDegraded, 0, 100, 250}}), kEpoch).nics[0].weight_permille, 100);
  EXPECT_EQ(MakePlan(OneNode({{"r0", PlannedState::kDegraded, 0, 1000, 60'000}}), kEpoch).nics[0].weight_permille, 1000);
}

// Goal: a NIC's weight follows its rate, under the operator's setting and jobs' reports.
TEST(Planner, TheRateIsACeiling) {
  constexpr uint64_t kGbit = 1'000'000'000;
  const NodeModel node = {"n0",
                          {{"r0", PlannedState::kHealthy, 100 * kGbit},
                           {"r1", PlannedState::kDegraded, 25 * kGbit},
                           {"r2", PlannedState::kHealthy, 0},
                           {"r3", PlannedState::kHealthy, 25 * kGbit, 100},
                           {"r4", PlannedState::kFailed, 400 * kGbit / 4},
                           {"r5", PlannedState::kDegraded, 100 * kGbit, 1000, 100}}};
  const Plan plan = MakePlan({{node}}, kEpoch);
  EXPECT_EQ(CheckPlan(plan, {{node}}), "");
  std::vector<uint16_t> weights;
  for (const PlannedNic& nic : plan.nics) weights.push_back(nic.weight_permille);
  EXPECT_EQ(weights, (std::vector<uint16_t>{1000, 250, 1000, 100, 0, 500}));
  std::vector<std::string> reasons;
  for (const NicModel& nic : node.nics) reasons.push_back(WeightReason(node, nic));
  EXPECT_EQ(reasons, (std::vector<std::string>{"as much as any NIC of its node", "runs at 25 Gbit/s, the best of its node at 100 Gbit/s",
                                               "as much as any NIC of its node", "limited by an operator", "failed: abandoned at once",
                                               "jobs report that it moves 10% of their best rail"}));
}

TEST(Planner, ARateIsNeverRoundedToForbidden) {
  const ClusterModel cluster = OneNode({{"r0", PlannedState::kHealthy, 1'000'000'000'000}, {"r1", PlannedState::kHealthy, 1}});
  EXPECT_EQ(MakePlan(cluster, kEpoch).nics[1].weight_permille, 1);
  EXPECT_EQ(CheckPlan(MakePlan(cluster, kEpoch), cluster), "");
}

TEST(Planner, AWeightAboveFullIsFull) {
  EXPECT_EQ(MakePlan(OneNode({{"r0", PlannedState::kHealthy, 0, 60'000}}), kEpoch).nics[0].weight_permille, kFullWeightPermille);
}

TEST(Planner, AnEmptyClusterHasAnEmptyPlan) {
  EXPECT_TRUE(MakePlan({}, kEpoch).nics.empty());
  EXPECT_EQ(CheckPlan(MakePlan({}, kEpoch), {}), "");
}

TEST(Planner, AStateOutOfRangeCarriesNothing) {
  EXPECT_EQ(MakePlan(OneNode({{"r0", static_cast<PlannedState>(200), 0, 1000}}), kEpoch).nics[0].weight_permille, 0);
}

struct BadPlan {
  std::string name;
  void (*spoil)(Plan*, ClusterModel*);
  std::string complaint;
};

class CheckPlanTest : public testing::TestWithParam<BadPlan> {};

TEST_P(CheckPlanTest, NamesWhatIsWrong) {
  ClusterModel cluster = {{{"n0", {{"r0"}, {"r1", PlannedState::kFailed}}}, {"n1", {{"r0", PlannedState::kDrained}}}}};
  Plan plan = MakePlan(cluster, kEpoch);
  ASSERT_EQ(CheckPlan(plan, cluster), "");
  GetParam().spoil(&plan, &cluster);
  EXPECT_EQ(CheckPlan(plan, cluster), GetParam().complaint);
}

INSTANTIATE_TEST_SUITE_P(
    Bad, CheckPlanTest,
    testing::Values(
        BadPlan{"Twice", [](Plan* plan, ClusterModel*) { plan->nics.push_back(plan->nics[0]); }, "the plan has NIC n0/r0 twice"},
        BadPlan{"Missing", [](Plan* plan, ClusterModel*) { plan->nics.erase(plan->nics.begin() + 1); }, "the plan leaves out NIC n0/r1"},
        BadPlan{"Foreign", [](Plan* plan, ClusterModel*) { plan->nics[0].nic = "r9"; },
                "the plan speaks of NIC n0/r9, which the model does not have"},
        BadPlan{"TooHeavy", [](Plan* plan, ClusterModel*) { plan->nics[0].weight_permille = 1001; },
                "the plan gives NIC n0/r0 weight 1001, more than 1000"},
        BadPlan{"DeadWithWeight", [](Plan* plan, ClusterModel*) { plan->nics[1].weight_permille = 1; },
                "the plan gives NIC n0/r1 weight 1 although it may not carry traffic"},
        BadPlan{"DrainedWithWeight", [](Plan* plan, ClusterModel*) { plan->nics[2].weight_permille = 1000; },
                "the plan gives NIC n1/r0 weight 1000 although it may not carry traffic"},
        BadPlan{"Starved", [](Plan* plan, ClusterModel*) { plan->nics[0].weight_permille = 499; },
                "the plan gives NIC n0/r0 weight 499, less than anybody but the operator and its own rate may"},
        BadPlan{"OtherState", [](Plan* plan, ClusterModel*) { plan->nics[1].state = PlannedState::kHealthy; },
                "the plan has another state of NIC n0/r1 than the model"},
        BadPlan{"OtherReason", [](Plan* plan, ClusterModel*) { plan->nics[1].on_purpose = true; },
                "the plan takes NIC n0/r1 away for another reason than the model"},
        BadPlan{"ModelTwice", [](Plan*, ClusterModel* cluster) { cluster->nodes[0].nics[1].name = "r0"; },
                "the model has NIC n0/r0 twice"}),
    [](const testing::TestParamInfo<BadPlan>& info) { return info.param.name; });

TEST(Planner, ABrokenPathIsForbiddenOnceWhileBothItsEndsCarry) {
  const BrokenPath path = {"n0", "r1", "n1", "r0"};
  const BrokenPath later = {"n0", "r1", "n1", "r1"};
  for (const PlannedState a : kStates)
    for (const PlannedState b : kStates) {
      ClusterModel cluster = {{{"n0", {{"r0"}, {"r1", a}}}, {"n1", {{"r0", b}, {"r1"}}}}};
      // Both ends report it; and a node reports NICs that no node has, or a path to itself.
      cluster.broken_paths = {later, path, path, {"n0", "r9", "n1", "r0"}, {"n0", "r1", "n0", "r0"}, {"n1", "r0", "n0", "r1"}};
      const Plan plan = MakePlan(cluster, kEpoch);
      EXPECT_EQ(CheckPlan(plan, cluster), "");
      std::vector<BrokenPath> expected;
      const auto carries = [](PlannedState state) {
        return state == PlannedState::kHealthy || state == PlannedState::kDegraded || state == PlannedState::kSuspect;
      };
      if (carries(a) && carries(b)) expected.push_back(path);
      if (carries(a)) expected.push_back(later);
      EXPECT_EQ(plan.broken_paths, expected);
    }
}

TEST(Planner, APlanWithOtherPathsIsRefusedAndTheirNumberIsBounded) {
  ClusterModel cluster = {{{"n0", {{"r0"}}}, {"n1", {}}}};
  Plan plan = MakePlan(cluster, kEpoch);
  EXPECT_TRUE(plan.HasSameContent(MakePlan(cluster, Epoch{})));
  plan.broken_paths = {{"n0", "r0", "n1", "r0"}};
  EXPECT_EQ(CheckPlan(plan, cluster), "the plan forbids other paths than those that the model calls broken");
  EXPECT_FALSE(plan.HasSameContent(MakePlan(cluster, kEpoch)));
  for (size_t i = 0; i <= kBrokenPathsMax; ++i) {
    cluster.nodes[1].nics.push_back({"r" + std::to_string(i)});
    cluster.broken_paths.push_back({"n0", "r0", "n1", "r" + std::to_string(i)});
  }
  plan = MakePlan(cluster, kEpoch);
  EXPECT_EQ(plan.broken_paths.size(), kBrokenPathsMax);
  EXPECT_EQ(CheckPlan(plan, cluster), "");
}

// Goal: a cluster planned in parts has the plan of the whole. Method: nodes come, lose NICs and paths, and get them back, at random; each
// time the part holds what changed and the ends of broken paths.
TEST(Planner, PartsMakeTheWhole) {
  std::mt19937 random(1);
  const auto any = [&](size_t end) { return random() % end; };
  std::map<std::string, NodeModel> nodes;
  std::vector<BrokenPath> broken;
  Plan plan;
  for (uint64_t step = 1; step <= 3000; ++step) {
    std::set<std::string> changed;
    for (size_t i = any(3); i < 3; ++i) {
      const std::string name = "n" + std::to_string(any(20));
      changed.insert(name);
      NodeModel& node = nodes[name] = {name, {}};
      for (size_t nic = 0; nic < any(4); ++nic)
        node.nics.push_back({"r" + std::to_string(nic), kStates[any(std::size(kStates))], 0, kWeights[any(std::size(kWeights))]});
    }
    if (any(4) == 0) broken.clear();
    for (size_t i = any(4); i < 2; ++i) {
      const size_t a = any(20);
      const size_t b = any(20);
      const std::string one = "n" + std::to_string(a);
      const std::string other = "n" + std::to_string(b);
      broken.push_back({std::min(one, other), "r0", std::max(one, other), "r" + std::to_string(any(3))});
    }
    ClusterModel whole{{}, broken};
    ClusterModel part{{}, broken};
    for (const auto& [name, node] : nodes) {
      whole.nodes.push_back(node);
      const bool end =
          std::any_of(broken.begin(), broken.end(), [&, n = name](const auto& path) { return path.node == n || path.peer_node == n; });
      if (end || changed.contains(name)) part.nodes.push_back(node);
    }
    const Epoch epoch = {1, step};
    const Plan planned = MakePlan(part, epoch);
    ASSERT_EQ(CheckPlan(planned, part), "");
    const bool same = planned.HasSameContent(PartOf(plan, part));
    const Plan next = Replace(plan, part, planned);
    ASSERT_EQ(CheckPlan(next, whole), "") << "step " << step;
    ASSERT_TRUE(next.HasSameContent(MakePlan(whole, epoch))) << "step " << step;
    ASSERT_EQ(next.epoch, epoch);
    ASSERT_EQ(same, next.HasSameContent(plan)) << "step " << step;
    plan = next;
  }
}

TEST(Planner, ADrainForOneJobLeavesTheWeightToOthers) {
  ClusterModel model{
      {{"n0", {{.name = "r0", .drained_jobs = {"train"}}, {.name = "r1", .state = PlannedState::kFailed, .drained_jobs = {"train"}}}}}};
  Plan plan = MakePlan(model, {1, 1});
  EXPECT_EQ(plan.nics[0].weight_permille, kFullWeightPermille);
  EXPECT_EQ(plan.nics[0].drained_jobs, std::vector<std::string>{"train"});
  EXPECT_TRUE(plan.nics[1].drained_jobs.empty()) << "a dead one carries nobody's bytes";
  EXPECT_EQ(CheckPlan(plan, model), "");
  EXPECT_EQ(WeightReason(model.nodes[0], model.nodes[0].nics[0]), "as much as any NIC of its node; drained for job train");
  EXPECT_EQ(WeightReason(model.nodes[0], model.nodes[0].nics[1]), "failed: abandoned at once");
  plan.nics[0].drained_jobs = {"eval"};
  EXPECT_EQ(CheckPlan(plan, model), "the plan keeps other jobs off NIC n0/r0 than the operator");
}

}  // namespace
}  // namespace r2cc::plan
