#include "daemon/page/plan_model.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/planner.h"

namespace r2cc::daemon {
namespace {

health::NodeState State() {
  health::NodeState state;
  state.node = "n1";
  state.epoch = {2, 3};
  state.nics.push_back({.identity = {.name = "rail0"}, .state = health::NicState::kFailed, .share_permille = 250});
  return state;
}

TEST(PlanModelTest, TheModelHoldsEveryNodesNics) {
  health::ClusterView view("n0");
  health::NodeState own = State();
  own.node = "n0";
  own.nics[0].state = health::NicState::kDegraded;
  own.nics[0].operator_weight_permille = 300;
  view.SetOwn(own, 1);
  health::NodeState drilled = State();
  drilled.nics[0].drill_failed = true;
  view.Merge(drilled, 1);
  const plan::ClusterModel model = ToModel(view);
  ASSERT_EQ(model.nodes.size(), 2u);
  EXPECT_EQ(model.nodes[0].nics[0].state, plan::PlannedState::kDegraded);
  EXPECT_EQ(model.nodes[0].nics[0].operator_weight_permille, 300);
  EXPECT_EQ(model.nodes[0].nics[0].share_permille, 250);
  EXPECT_EQ(model.nodes[1].name, "n1");
  EXPECT_EQ(model.nodes[1].nics[0].state, plan::PlannedState::kFailed);
  EXPECT_FALSE(model.nodes[0].nics[0].on_purpose);
  EXPECT_TRUE(model.nodes[1].nics[0].on_purpose);
}

TEST(PlanModelTest, APartHoldsWhatChangedAndTheEndsOfBrokenPaths) {
  health::ClusterView view("n0");
  const auto merge = [&](const std::string& node, uint64_t counter, health::PairReports pairs) {
    health::NodeState state = State();
    state.node = node;
    state.epoch.counter = counter;
    state.nics[0].flaps_total = static_cast<uint32_t>(counter);
    state.pairs = std::move(pairs);
    view.Merge(state, 1);
  };
  const auto part = [&](uint64_t since) {
    std::string names;
    for (const plan::NodeModel& node : ToModel(view, since).nodes) names += node.name + " ";
    return names;
  };
  for (const char* node : {"n1", "n2", "n3", "n4"}) merge(node, 1, {});
  const uint64_t first = view.revision();
  EXPECT_EQ(part(0), "n1 n2 n3 n4 ");
  EXPECT_EQ(part(first), "");
  merge("n3", 2, {{"rail0", {"n1", "rail0"}, true}});
  EXPECT_EQ(part(first), "") << "a silent pair is no verdict";
  merge("n3", 3, {{"rail0", {"n1", "rail0"}, true, true}});
  EXPECT_EQ(part(first), "n1 n3 ");
  const uint64_t second = view.revision();
  merge("n2", 2, {});
  EXPECT_EQ(part(second), "n1 n3 ") << "how often it flapped plans nothing";
  EXPECT_EQ(ToModel(view, second).broken_paths, (std::vector<plan::BrokenPath>{{"n1", "rail0", "n3", "rail0"}}));
  merge("n3", 4, {});
  EXPECT_EQ(part(second), "n3 ");
}

TEST(PlanModelTest, PlansAreReported) {
  plan::Plan before;
  before.nics = {{"n0", "a", plan::PlannedState::kHealthy, 1000}, {"n0", "b", plan::PlannedState::kHealthy, 1000}};
  plan::Plan after;
  after.epoch = {2, 3};
  after.nics = {{"n0", "a", plan::PlannedState::kFailed, 0}, {"n0", "c", plan::PlannedState::kDrained, 0}};
  EXPECT_EQ(DescribeChange(before, after), "n0/a FAILED 0% (was HEALTHY 100%), n0/c DRAINED 0% (new), n0/b gone");
  EXPECT_EQ(DescribeChange(after, after), "");
  const v1::Plan message = ToProto(after);
  EXPECT_EQ(message.epoch().counter(), 3u);
  EXPECT_EQ(message.nics(0).state(), v1::FAILED);
  EXPECT_EQ(message.nics(1).weight_permille(), 0u);
}

// Each end reports it in its own way.
TEST(PlanModelTest, ABrokenPathIsInThePlanAndItsText) {
  health::ClusterView view("n0");
  health::NodeState n0, n1;
  n0.node = "n0";
  n0.nics.push_back({.identity = {.name = "rail0"}, .state = health::NicState::kDegraded});
  n0.pairs = {{"rail0", {"n1", "rail1"}, true, true}};
  n1.node = "n1";
  n1.nics.push_back({.identity = {.name = "rail1"}, .state = health::NicState::kHealthy});
  n1.pairs = {{"rail1", {"n0", "rail0"}, true, true}};
  view.SetOwn(n0, 0);
  view.Merge(n1, 0);
  const plan::Plan plan = plan::MakePlan(ToModel(view), {1, 1});
  EXPECT_EQ(plan.broken_paths, (std::vector<plan::BrokenPath>{{"n0", "rail0", "n1", "rail1"}}));
  const v1::Plan proto = ToProto(plan);
  ASSERT_EQ(proto.broken_paths_size(), 1);
  EXPECT_EQ(proto.broken_paths(0).peer_nic(), "rail1");
  plan::Plan without = plan;
  without.broken_paths.clear();
  EXPECT_EQ(DescribeChange(without, plan), "path n0/rail0 to n1/rail1 forbidden");
  EXPECT_EQ(DescribeChange(plan, without), "path n0/rail0 to n1/rail1 allowed again");
}

TEST(PlanModelTest, TheModelHoldsDrainsOfSingleJobs) {
  health::NodeState state = State();
  state.nics[0].drained_jobs = {"eval", "train"};
  health::ClusterView cluster(state.node);
  cluster.SetOwn(state, 0);
  EXPECT_EQ(ToModel(cluster).nodes[0].nics[0].drained_jobs, state.nics[0].drained_jobs);
}

}  // namespace
}  // namespace r2cc::daemon
