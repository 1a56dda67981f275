// NICs that come and go while the others are judged.
#include <gtest/gtest.h>

#include "health/view/node_health.h"

namespace r2cc::health {
namespace {

class NodeHealthNicsTest : public testing::Test {
 protected:
  void See(EvidenceKind kind, const std::string& nic) { health_.Handle({"n0", {"n0", nic}, kind, 0, ++now_, {}, "link down"}); }
  NicState State(const std::string& nic) { return health_.Snapshot().Find(nic)->state; }

  Nanos now_ = kNanosPerSecond;
  NodeHealth health_{"n0", {{.name = "r0", .interface = "eth0"}, {.name = "r1", .interface = "eth1"}}, NodePolicy(), {}, now_};
};

TEST_F(NodeHealthNicsTest, ANicThatComesHasItsSettingsAndTheOthersStay) {
  See(EvidenceKind::kLinkUp, "r0");
  See(EvidenceKind::kLinkUp, "r1");
  See(EvidenceKind::kLinkDown, "r1");
  const uint64_t revision = health_.revision();
  health_.Add({.name = "r2", .interface = "eth2"}, {.drained = true, .weight_permille = 300}, /*cabled=*/false, now_);
  EXPECT_GT(health_.revision(), revision);
  EXPECT_TRUE(health_.initializing()) << "until its link is reported";
  See(EvidenceKind::kLinkUp, "r2");
  EXPECT_FALSE(health_.initializing());
  EXPECT_EQ(State("r2"), NicState::kDrained);
  EXPECT_EQ(health_.Snapshot().Find("r2")->operator_weight_permille, 300);
  EXPECT_EQ(State("r1"), NicState::kFailed);
}

TEST_F(NodeHealthNicsTest, NothingIsKeptOfANicThatGoes) {
  See(EvidenceKind::kLinkUp, "r0");
  See(EvidenceKind::kLinkUp, "r1");
  health_.Remove("r1");
  health_.Remove("r9");
  EXPECT_FALSE(health_.Has("r1"));
  EXPECT_EQ(health_.Snapshot().nics.size(), 1u);
  See(EvidenceKind::kLinkUp, "r1");
  EXPECT_FALSE(health_.Has("r1")) << "later evidence of it is nobody's";
  health_.Add({.name = "r1", .interface = "eth9"}, {}, /*cabled=*/false, now_);
  See(EvidenceKind::kLinkDown, "r1");
  EXPECT_EQ(State("r1"), NicState::kUncabled) << "another one of the same name";
}

}  // namespace
}  // namespace r2cc::health
