// A node's judgement of ports without a cable.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "health/view/node_health.h"

namespace r2cc::health {
namespace {

class NodeCablesTest : public testing::Test {
 protected:
  static std::unique_ptr<NodeHealth> Make(const std::set<std::string>& cabled) {
    const std::vector<NicIdentity> nics = {{.name = "r0", .interface = "eth0"}, {.name = "r1", .interface = "eth1"}};
    return std::make_unique<NodeHealth>("n0", nics, NodePolicy(), OperatorSettings(), kNanosPerSecond, cabled);
  }
  // "PROVING>FAILED link down"; empty: no change.
  std::string See(EvidenceKind kind, const std::string& nic, const std::string& detail = "", int64_t value = 0, const NicKey& peer = {}) {
    std::string changes_text;
    for (const NicChange& change : health_->Handle({"n0", {"n0", nic}, kind, value, now_, peer, detail}))
      changes_text +=
          std::string(NicStateName(change.transition.from)) + ">" + NicStateName(change.transition.to) + " " + change.transition.reason;
    return changes_text;
  }
  std::string Down(const std::string& nic) { return See(EvidenceKind::kLinkDown, nic, "link down"); }

  Nanos now_ = kNanosPerSecond;
  std::unique_ptr<NodeHealth> health_ = Make({});
};

TEST_F(NodeCablesTest, APortThatWasNeverCabledIsNoFault) {
  See(EvidenceKind::kLinkUp, "r0");
  EXPECT_EQ(Down("r1"), "PROVING>UNCABLED link down, and it was never up: no cable yet");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kHealthy);
  EXPECT_EQ(health_->cabled(), std::set<std::string>{"r0"});
  EXPECT_EQ(See(EvidenceKind::kJobFenced, "r1", "train: silence", 0, {"n1", "r1"}), "");
  EXPECT_EQ(See(EvidenceKind::kLinkUp, "r1"), "UNCABLED>PROVING a cable was put in: proving for 300 ms");
  now_ += kNanosPerSecond;
  health_->Tick(now_);
  EXPECT_EQ(Down("r1"), "HEALTHY>FAILED link down");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kDegraded);
}

TEST_F(NodeCablesTest, AKnownCableOrAMissingInterfaceIsAFaultFromTheStart) {
  health_ = Make({"r0"});
  EXPECT_EQ(Down("r0"), "PROVING>FAILED link down");
  EXPECT_EQ(See(EvidenceKind::kLinkDown, "r1", "no interface eth1", kLinkGone), "PROVING>FAILED no interface eth1");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kUnhealthy);
}

TEST_F(NodeCablesTest, ANodeWithoutAnyCableIsNotHealthy) {
  Down("r0");
  Down("r1");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kUnhealthy);
}

}  // namespace
}  // namespace r2cc::health
