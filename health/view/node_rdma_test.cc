// Reports of the RDMA device behind a NIC.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "health/view/node_health.h"

namespace r2cc::health {
namespace {

class NodeRdmaTest : public testing::Test {
 protected:
  NodeRdmaTest() { See(EvidenceKind::kLinkUp); }

  std::string See(EvidenceKind kind, int64_t value = 0, const std::string& detail = "") {
    std::string changes_text;
    for (const NicChange& change : health_.Handle({"n0", {"n0", "r0"}, kind, value, now_, {}, detail}))
      changes_text += std::string(NicStateName(change.transition.to)) + " (" + change.transition.reason + ")";
    return changes_text;
  }

  Nanos now_ = kNanosPerSecond;
  NodeHealth health_{"n0", std::vector<NicIdentity>{{.name = "r0", .interface = "eth0"}}, NodePolicy(), {}, now_};
};

// TCP may go on over the interface.
TEST_F(NodeRdmaTest, APortWithoutRdmaIsDegraded) {
  EXPECT_EQ(See(EvidenceKind::kRdmaUp), "");
  EXPECT_EQ(See(EvidenceKind::kRdmaEvent, 1, "port error"), "");
  EXPECT_EQ(See(EvidenceKind::kRdmaDown, 0, "no device"), "DEGRADED (no device)");
  EXPECT_EQ(See(EvidenceKind::kRdmaUp), "HEALTHY (link up)");
}

TEST_F(NodeRdmaTest, ALinkThatIsDownOutweighsSilence) {
  See(EvidenceKind::kLinkDown, 0, "link down");
  EXPECT_EQ(See(EvidenceKind::kRdmaDown, 0, "no device"), "");
  EXPECT_EQ(health_.Snapshot().nics[0].reason, "link down");
}

}  // namespace
}  // namespace r2cc::health
