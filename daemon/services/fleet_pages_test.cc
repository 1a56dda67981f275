#include "daemon/services/fleet_pages.h"

#include <gtest/gtest.h>

#include <set>

#include "daemon/core/convert.h"

namespace r2cc::daemon {
namespace {

class FleetPagesTest : public testing::Test {
 protected:
  // `failed`: nodes whose rail1 is.
  void Fill(int nodes, const std::set<int>& failed = {}) {
    for (int i = 0; i < nodes; ++i) {
      health::NodeState state;
      state.node = "n" + std::to_string(i);
      state.epoch = {1, 1};
      state.status = failed.contains(i) ? health::NodeStatus::kDegraded : health::NodeStatus::kHealthy;
      for (int rail = 0; rail < 2; ++rail) {
        health::NicStatus nic;
        nic.identity.name = "rail" + std::to_string(rail);
        nic.state = rail == 1 && failed.contains(i) ? health::NicState::kFailed : health::NicState::kHealthy;
        state.nics.push_back(nic);
      }
      view_.Merge(state, 1);
    }
  }
  // All pages; how many in `pages`.
  v1::ListNicsReply List(v1::ListNicsRequest request, size_t bytes_max, int* pages) {
    v1::ListNicsReply all;
    *pages = 0;
    do {
      const v1::ListNicsReply page = NicsPage(request, view_, show_, bytes_max);
      EXPECT_EQ(page.has_summary(), *pages == 0);
      ++*pages;
      all.MergeFrom(page);
      request.set_after_node(page.next_after());
    } while (!request.after_node().empty() && *pages < 1000);
    return all;
  }

  health::ClusterView view_{"own"};
  const ShowNode show_ = [this](const health::NodeEntry& entry) { return ToProto(entry.state, view_.StatusOf(entry), Moment()); };
};

TEST_F(FleetPagesTest, PagesTogetherAreTheWholeAndEachIsSmall) {
  Fill(100, {7, 42});
  int pages = 0;
  const v1::ListNicsReply all = List({}, 1000, &pages);
  EXPECT_GE(pages, 5);
  ASSERT_EQ(all.nodes_size(), 100);
  std::set<std::string> names;
  for (const auto& node : all.nodes()) names.insert(node.node());
  EXPECT_EQ(names.size(), 100u);
  ASSERT_EQ(all.summary().nodes_size(), 2);
  EXPECT_EQ(all.summary().nodes(0).nodes(), 98u);
  EXPECT_EQ(all.summary().nodes(1).word(), v1::NODE_DEGRADED);
  EXPECT_EQ(all.summary().nics(1).state(), v1::FAILED);
  EXPECT_EQ(all.summary().nics(1).nics(), 2u);
  const v1::ListNicsReply first = NicsPage({}, view_, show_, 1000);
  EXPECT_LT(first.ByteSizeLong(), 1500u);
}

TEST_F(FleetPagesTest, FiltersNameTheNicsThatFitAlone) {
  Fill(100, {7, 42});
  int pages = 0;
  v1::ListNicsRequest request;
  request.set_bad(true);
  v1::ListNicsReply bad = List(request, 1 << 20, &pages);
  EXPECT_EQ(pages, 1);
  ASSERT_EQ(bad.nodes_size(), 2);
  EXPECT_EQ(bad.nodes(0).node(), "n42");
  ASSERT_EQ(bad.nodes(0).nics_size(), 1);
  EXPECT_EQ(bad.nodes(0).nics(0).name(), "rail1");
  request.set_node_glob("n7*");
  EXPECT_EQ(List(request, 1 << 20, &pages).nodes_size(), 1);
  request.set_bad(false);
  EXPECT_EQ(List(request, 1 << 20, &pages).nodes_size(), 11) << "n7, n70 to n79";
  request.add_states(v1::DRAINED);
  EXPECT_EQ(List(request, 1 << 20, &pages).nodes_size(), 0);
  request.add_states(v1::FAILED);
  EXPECT_EQ(List(request, 1 << 20, &pages).nodes_size(), 1);
}

TEST_F(FleetPagesTest, AStatusOfManyNodesNamesThoseThatAreNotWell) {
  Fill(100, {3, 7, 42});
  v1::StatusRequest request;
  request.set_nodes_max(2);
  v1::StatusReply reply;
  AddStatusNodes(request, view_, show_, &reply);
  EXPECT_EQ(reply.nodes_size(), 2);
  EXPECT_EQ(reply.left_out(), 1u);
  EXPECT_EQ(reply.next_after(), "");
  reply.Clear();
  request.set_nodes_max(200);
  AddStatusNodes(request, view_, show_, &reply);
  EXPECT_EQ(reply.nodes_size(), 100) << "few enough to be named";
  reply.Clear();
  request.Clear();
  AddStatusNodes(request, view_, show_, &reply, 1000);
  EXPECT_LT(reply.nodes_size(), 100);
  EXPECT_EQ(reply.next_after(), reply.nodes(reply.nodes_size() - 1).node());
  reply.Clear();
  request.set_bad(true);
  AddStatusNodes(request, view_, show_, &reply);
  EXPECT_EQ(reply.nodes_size(), 3);
}

TEST_F(FleetPagesTest, APlansPagesEndBetweenNodes) {
  plan::Plan plan;
  for (const char* node : {"a", "b", "c"})
    for (const char* nic : {"r0", "r1"}) plan.nics.push_back({node, nic});
  plan.broken_paths = {{"a", "r0", "b", "r0"}};
  std::string next;
  const plan::Plan first = PlanPage(plan, "", &next, 3);
  EXPECT_EQ(first.nics.size(), 4u);
  EXPECT_EQ(next, "b");
  EXPECT_EQ(first.broken_paths.size(), 1u);
  const plan::Plan second = PlanPage(plan, next, &next, 3);
  EXPECT_EQ(second.nics.size(), 2u);
  EXPECT_EQ(second.nics[0].node, "c");
  EXPECT_EQ(next, "");
  EXPECT_TRUE(second.broken_paths.empty());
}

}  // namespace
}  // namespace r2cc::daemon
