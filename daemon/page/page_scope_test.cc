#include "daemon/page/page_scope.h"

#include <gtest/gtest.h>

#include "daemon/page/plan_model.h"

namespace r2cc::daemon {
namespace {

health::NodeState Node(const std::string& name, int nics) {
  health::NodeState state;
  state.node = name;
  state.epoch.counter = 1;
  for (int nic = 0; nic < nics; ++nic) state.nics.emplace_back().identity.name = "r" + std::to_string(nic);
  return state;
}

class PageScopeTest : public testing::Test {
 protected:
  PageScopeTest() {
    view_.SetOwn(Node("own", 2), 0);
    for (const char* name : {"a", "b", "c", "x", "y", "z"}) view_.Merge(Node(name, 2), 0);
  }
  health::ClusterView view_{"own"};
};

TEST_F(PageScopeTest, HoldsAllThatFit) {
  EXPECT_TRUE(ChooseScope(view_, "own", {}, 14).all);
  EXPECT_TRUE(ChooseScope(view_, "own", {}).Holds("z"));
}

TEST_F(PageScopeTest, DropsWhatMattersLeast) {
  const JobPeers jobs = {{"uid 1000", {"b", "c", "x"}}, {"uid 1001", {"z"}}};
  PageScope scope = ChooseScope(view_, "own", {}, 6);
  EXPECT_EQ(scope.nodes, (std::set<std::string>{"own", "a", "b"}));
  EXPECT_EQ(scope.left_out, 4u);
  EXPECT_EQ(scope.left_out_of_jobs, 0u);
  scope = ChooseScope(view_, "own", jobs, 6);
  EXPECT_EQ(scope.nodes, (std::set<std::string>{"own", "b", "z"})) << "users in turn";
  EXPECT_EQ(scope.left_out_of_jobs, 2u);
  scope = ChooseScope(view_, "own", jobs, 12);
  EXPECT_EQ(scope.nodes, (std::set<std::string>{"own", "a", "b", "c", "x", "z"}));
  EXPECT_EQ(scope.left_out, 1u);
  EXPECT_EQ(ChooseScope(view_, "own", jobs, 2).nodes, std::set<std::string>{"own"});
}

// One node's word about its paths takes a bounded part of the page, and the own node's goes first.
TEST_F(PageScopeTest, BrokenPathsAreBoundedByNode) {
  health::NodeState liar = Node("a", 2);
  liar.epoch.counter = 2;
  for (int i = 0; i < 1000; ++i) liar.pairs.push_back({"r0", {"b", "r" + std::to_string(i)}, true, true});
  view_.Merge(liar, 0);
  health::NodeState own = Node("own", 2);
  own.pairs = {{"r1", {"c", "r1"}, true, true}};
  view_.SetOwn(own, 0);
  const plan::ClusterModel model = ToModel(view_, 0, {}, "own");
  ASSERT_EQ(model.broken_paths.size(), 1 + kBrokenPathsPerNodeMax);
  EXPECT_EQ(model.broken_paths[0], (plan::BrokenPath{"c", "r1", "own", "r1"}));
}

}  // namespace
}  // namespace r2cc::daemon
