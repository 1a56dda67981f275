// Large packets that are lost between daemons in simulated time.
#include "daemon/rails/rail_watch_rig.h"

namespace r2cc::daemon {
namespace {

class RailWatchLargeTest : public RailWatchTest {
 protected:
  RailWatchLargeTest() { mtu_ = 9000; }

  std::string LastDetail(int node, int rail) {
    std::string detail = "nothing";
    for (const auto& one : nodes_[node]->seen)
      if (one.subject == Port(node, rail)) detail = one.detail;
    return detail;
  }
};

constexpr const char* kPortText =
    "packets over 1500 bytes are lost at the port of n1/rail1 (NIC, cable or switch port): to or from n0/rail1, n2/rail1; these carry them "
    "to others";

TEST_F(RailWatchLargeTest, APortWhoseMtuWasResetIsFoundByItsOwnDaemon) {
  Make(3, 2);
  core_.Advance(2000 * kMs);
  ASSERT_EQ(EvidenceCount(), 0u);
  LimitPort(1, 1, 1500);
  core_.Advance(1000 * kMs);
  EXPECT_EQ(KindsOf(1, 1), std::vector<EvidenceKind>{EvidenceKind::kLargeLost});
  EXPECT_EQ(LastDetail(1, 1), kPortText);
  EXPECT_EQ(BrokenPaths(1), (std::vector<NicKey>{Port(0, 1), Port(2, 1)}));
  // The others have no fault, also if their own pairs lose packets.
  core_.Advance(5000 * kMs);
  EXPECT_EQ(EvidenceCount(), 1u);
  EXPECT_EQ(BrokenPaths(0), std::vector<NicKey>{Port(1, 1)});
  EXPECT_EQ(nodes_[1]->watch->LargeVerdict("rail1").fault.kind, health::FaultKind::kPort);
  EXPECT_EQ(nodes_[0]->watch->LargeVerdict("rail1").fault.kind, health::FaultKind::kPeers);

  Mend();
  core_.Advance(1500 * kMs);
  EXPECT_EQ(KindsOf(1, 1), (std::vector<EvidenceKind>{EvidenceKind::kLargeLost, EvidenceKind::kLargePasses}));
  for (int node = 0; node < 3; ++node) EXPECT_TRUE(BrokenPaths(node).empty());
  EXPECT_EQ(EvidenceCount(), 2u);
}

TEST_F(RailWatchLargeTest, APortIsFoundWhereNoJobRuns) {
  Make(3, 2);
  for (auto& node : nodes_) node->watch->SetJobPeers({});
  core_.Advance(3000 * kMs);
  LimitPort(1, 1, 1500);
  core_.Advance(1500 * kMs);
  EXPECT_EQ(KindsOf(1, 1), std::vector<EvidenceKind>{EvidenceKind::kLargeLost});
  EXPECT_EQ(LastDetail(1, 1), kPortText);
  core_.Advance(5000 * kMs);
  EXPECT_EQ(EvidenceCount(), 1u);
}

TEST_F(RailWatchLargeTest, BetweenTwoNodesItIsBothEnds) {
  Make(2, 2);
  core_.Advance(2000 * kMs);
  LimitPort(1, 1, 1500);
  core_.Advance(1000 * kMs);
  for (int node = 0; node < 2; ++node) {
    EXPECT_EQ(KindsOf(node, 1), std::vector<EvidenceKind>{EvidenceKind::kLargeLost});
    EXPECT_EQ(BrokenPaths(node), std::vector<NicKey>{Port(1 - node, 1)});
  }
  EXPECT_EQ(LastDetail(0, 1), "packets over 1500 bytes are lost between n0/rail1 and n1/rail1; small ones pass");
  EXPECT_TRUE(KindsOf(0, 0).empty());
  Mend();
  core_.Advance(1500 * kMs);
  EXPECT_EQ(KindsOf(0, 1), (std::vector<EvidenceKind>{EvidenceKind::kLargeLost, EvidenceKind::kLargePasses}));
}

TEST_F(RailWatchLargeTest, APathBetweenTwoOfThreeIsThePath) {
  Make(4, 1);
  core_.Advance(2000 * kMs);
  net_.set_limit([](const auto& from, const auto& to) {
    const bool between =
        (from.address == Address(0, 0) && to.address == Address(3, 0)) || (from.address == Address(3, 0) && to.address == Address(0, 0));
    return between ? size_t{1500} : SIZE_MAX;
  });
  core_.Advance(2000 * kMs);
  EXPECT_EQ(KindsOf(0, 0), std::vector<EvidenceKind>{EvidenceKind::kLargeLost});
  EXPECT_EQ(
      LastDetail(0, 0),
      "packets over 1500 bytes are lost between n0/rail0 and n3/rail0, and these two only: both carry them to others; small ones pass");
  EXPECT_TRUE(KindsOf(1, 0).empty());
  EXPECT_EQ(BrokenPaths(3), std::vector<NicKey>{Port(0, 0)});
}

TEST_F(RailWatchLargeTest, AWholeRailIsTheSwitch) {
  Make(3, 2);
  core_.Advance(2000 * kMs);
  net_.set_limit([](const auto& from, const auto&) { return from.address.starts_with("10.0.1.") ? size_t{1500} : SIZE_MAX; });
  core_.Advance(2000 * kMs);
  for (int node = 0; node < 3; ++node) {
    EXPECT_EQ(KindsOf(node, 1), std::vector<EvidenceKind>{EvidenceKind::kLargeLost});
    EXPECT_TRUE(LastDetail(node, 1).starts_with("packets over 1500 bytes are lost on the whole rail of")) << LastDetail(node, 1);
  }
}

TEST_F(RailWatchLargeTest, ALinkThatGoesDownEndsIt) {
  Make(3, 2);
  core_.Advance(2000 * kMs);
  LimitPort(1, 1, 1500);
  core_.Advance(1500 * kMs);
  ASSERT_EQ(BrokenPaths(1).size(), 2u);
  nodes_[1]->watch->SetLink("rail1", false);
  nodes_[1]->own.nics[1].link_up = false;
  core_.Advance(500 * kMs);
  Publish(nodes_[1].get());
  core_.Advance(500 * kMs);
  EXPECT_TRUE(BrokenPaths(1).empty());
  EXPECT_TRUE(BrokenPaths(0).empty());
}

TEST_F(RailWatchLargeTest, ANodeOfAnOlderReleaseIsNotAsked) {
  mtu_ = 0;  // it does not report its MTU
  Make(3, 2);
  core_.Advance(2000 * kMs);
  LimitPort(1, 1, 1500);
  core_.Advance(5000 * kMs);
  EXPECT_EQ(EvidenceCount(), 0u);
}

TEST_F(RailWatchLargeTest, AJobsReportHasThePairProbedAtOnce) {
  Make(2, 2);
  core_.Advance(2000 * kMs);
  LimitPort(1, 1, 1500);
  nodes_[0]->watch->Suspect("rail1", Port(1, 1));
  core_.Advance(600 * kMs);
  EXPECT_EQ(KindsOf(0, 1), std::vector<EvidenceKind>{EvidenceKind::kLargeLost});
}

}  // namespace
}  // namespace r2cc::daemon
