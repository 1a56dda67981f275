#include "client/conditions/node_conditions.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

v1::NodeView Node(const std::string& name, v1::NicState rail1) {
  v1::NodeView node;
  node.set_node(name);
  node.set_word(rail1 == v1::HEALTHY ? v1::NODE_HEALTHY : v1::NODE_DEGRADED);
  for (const char* nic : {"rail0", "rail1"}) {
    v1::NicView& view = *node.add_nics();
    view.set_name(nic);
    view.set_operator_weight_permille(1000);
    view.set_state(view.name() == "rail1" ? rail1 : v1::HEALTHY);
    if (view.state() == v1::FAILED) view.set_reason("link down");
  }
  return node;
}

class NodeConditionsTest : public testing::Test {
 protected:
  std::vector<NodeConditions::Write> Look(const std::vector<v1::NodeView>& nodes, bool delivered = true) {
    const auto writes = conditions_.Look(nodes, now_);
    for (const auto& write : writes) delivered ? conditions_.Delivered(write, now_) : conditions_.Failed(write, now_);
    return writes;
  }

  NodeConditions conditions_;
  Nanos now_ = kNanosPerSecond;
};

TEST(NodeCondition, StatesWhatReadyStatesOnTheNode) {
  EXPECT_EQ(ConditionOf(Node("n0", v1::HEALTHY)), (NodeCondition{ConditionStatus::kFalse, "RailsWork", "2 of 2 rails usable"}));
  EXPECT_EQ(ConditionOf(Node("n0", v1::FAILED)),
            (NodeCondition{ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED: link down; 1 of 2 rails usable"}));
  EXPECT_EQ(ConditionOf(Node("n0", v1::PROVING)).status, ConditionStatus::kUnknown);
  EXPECT_EQ(ConditionOf(Node("n0", v1::UNCABLED)).status, ConditionStatus::kFalse) << "without a cable it is not to work";
  v1::NodeView gone = Node("n0", v1::HEALTHY);
  gone.set_word(v1::NODE_UNREACHABLE);
  EXPECT_EQ(ConditionOf(gone).status, ConditionStatus::kUnknown);
  v1::NodeView hostile = Node("n0", v1::FAILED);
  hostile.mutable_nics(1)->set_reason("\x1b[31m\n" + std::string(5000, 'x'));
  EXPECT_LE(ConditionOf(hostile).message.size(), 1024u);
  EXPECT_EQ(ConditionOf(hostile).message.find('\x1b'), std::string::npos);
}

TEST_F(NodeConditionsTest, ANodeWithAPathForANameIsLeftOut) {
  for (const char* name : {"", "n0/status", "../pods/x", "n0 HTTP/1.0\r\nX: y", "n0?force=true"})
    EXPECT_TRUE(Look({Node(name, v1::FAILED)}).empty()) << name;
}

TEST_F(NodeConditionsTest, ATurnIsWrittenOnceAndAHeartbeatLater) {
  auto writes = Look({Node("n0", v1::HEALTHY)});
  ASSERT_EQ(writes.size(), 1u);
  now_ += NodeConditions::kPause;
  EXPECT_TRUE(Look({Node("n0", v1::HEALTHY)}).empty());
  writes = Look({Node("n0", v1::FAILED)});
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_TRUE(writes[0].turned);
  now_ += NodeConditions::kPause;
  EXPECT_TRUE(Look({Node("n0", v1::PROVING)}).empty()) << "it is not decided";
  now_ += NodeConditions::kHeartbeat;
  writes = Look({Node("n0", v1::FAILED)});
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_FALSE(writes[0].turned);
}

TEST_F(NodeConditionsTest, ANicThatFlapsIsWrittenNoMoreThanOnceAPause) {
  size_t writes = 0;
  for (int second = 0; second < 100; ++second, now_ += kNanosPerSecond)
    writes += Look({Node("n0", second % 2 == 0 ? v1::FAILED : v1::HEALTHY)}).size();
  EXPECT_LE(writes, 11u);
}

TEST_F(NodeConditionsTest, AConditionThatWasNotTakenIsWrittenAgain) {
  EXPECT_EQ(Look({Node("n0", v1::FAILED)}, /*delivered=*/false).size(), 1u);
  EXPECT_TRUE(Look({Node("n0", v1::FAILED)}).empty());
  now_ += NodeConditions::kPause;
  EXPECT_EQ(Look({Node("n0", v1::FAILED)}).size(), 1u);
}

TEST_F(NodeConditionsTest, ManyAtOnceAreWrittenInTurn) {
  std::vector<v1::NodeView> nodes;
  for (int node = 0; node < 120; ++node) nodes.push_back(Node("n" + std::to_string(node), v1::FAILED));
  EXPECT_EQ(Look(nodes).size(), NodeConditions::kPerLookMax);
  EXPECT_EQ(Look(nodes).size(), NodeConditions::kPerLookMax);
  EXPECT_EQ(Look(nodes).size(), 20u);
  EXPECT_TRUE(Look(nodes).empty());
}

TEST_F(NodeConditionsTest, ADaemonOfTheStoreAloneIsNoNode) {
  v1::NodeView store;
  store.set_node("store");
  EXPECT_TRUE(Look({store}).empty());
}

TEST_F(NodeConditionsTest, ANodeThatLeftBeforeThisRunIsUnknownOnce) {
  conditions_.Adopt("gone", {ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED"}, now_);
  conditions_.Adopt("left", {ConditionStatus::kUnknown, "Left", "r2ccd of this node has left R2CC's cluster"}, now_);
  conditions_.Adopt("../pods/x", {ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED"}, now_);
  EXPECT_TRUE(Look({}).empty()) << "a view that has just begun does not have all nodes";
  now_ += NodeConditions::kGone;
  const auto writes = Look({});
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].node, "gone");
  EXPECT_EQ(writes[0].condition.status, ConditionStatus::kUnknown);
  EXPECT_TRUE(writes[0].turned);
  now_ += NodeConditions::kGone;
  EXPECT_TRUE(Look({}).empty());
}

TEST_F(NodeConditionsTest, ANodeOfTheViewIsWrittenAsIfThisRunHadWrittenBefore) {
  const NodeCondition degraded = ConditionOf(Node("n0", v1::FAILED));
  conditions_.Adopt("n0", degraded, now_);
  const auto same = Look({Node("n0", v1::FAILED)});
  ASSERT_EQ(same.size(), 1u) << "a heartbeat";
  EXPECT_FALSE(same[0].turned);
  now_ += NodeConditions::kPause;
  const auto writes = Look({Node("n0", v1::HEALTHY)});
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_TRUE(writes[0].turned);
  conditions_.Adopt("n0", degraded, now_);
  EXPECT_TRUE(Look({Node("n0", v1::HEALTHY)}).empty()) << "what is known already stays";
}

// As a node pool that shrinks: neither memory nor requests are kept for it.
TEST_F(NodeConditionsTest, ANodeThatLeftKubernetesTooIsForgotten) {
  Look({Node("n0", v1::HEALTHY)});
  now_ += NodeConditions::kGone;
  const auto writes = conditions_.Look({}, now_);
  ASSERT_EQ(writes.size(), 1u);
  conditions_.NotOurs(writes[0], now_);
  now_ += 10 * NodeConditions::kGone;
  EXPECT_TRUE(Look({}).empty());
}

TEST_F(NodeConditionsTest, NoMoreNodesAreKeptThanAClusterHas) {
  for (size_t node = 0; node < NodeConditions::kNodesMax; ++node)
    conditions_.Adopt("n" + std::to_string(node), {ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED"}, now_);
  conditions_.Adopt("adopted", {ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED"}, now_);
  EXPECT_TRUE(Look({Node("seen", v1::FAILED)}).empty());
  EXPECT_FALSE(conditions_.Knows("adopted"));
  EXPECT_FALSE(conditions_.Knows("seen"));
  EXPECT_EQ(Look({Node("n7", v1::FAILED)}).size(), 1u);
}

// As after a restart of the daemon that is asked: it knows nobody yet.
TEST_F(NodeConditionsTest, ANodeThatIsMissingForAMomentHasNotLeft) {
  Look({Node("n0", v1::HEALTHY)});
  now_ += NodeConditions::kGone - 1;
  EXPECT_TRUE(Look({}).empty());
  ++now_;
  const auto writes = Look({});
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].condition.status, ConditionStatus::kUnknown);
  EXPECT_TRUE(writes[0].turned);
  now_ += NodeConditions::kGone;
  EXPECT_TRUE(Look({}).empty()) << "once";
}

}  // namespace
}  // namespace r2cc::client
