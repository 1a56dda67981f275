// Whom a daemon talks to directly, beside the peers of its configuration.
#include <algorithm>

#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

class PeerSetTest : public WiringTest {
 protected:
  void StoreTells(const std::string& node, const std::string& address) {
    v1::NodeView view = PeerView(1, v1::HEALTHY);
    view.set_node(node);
    view.set_protocol(kPeerProtocol);
    view.set_peer_address(address);
    store_->Change("/r2cc/nodes/" + node, view.SerializeAsString());
    Settle();
  }
  void JobTalksTo(const std::string& node) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceKind::kFlowOpened);
    record.time_ns = core_.Now();
    plan::SetText(node, record.peer_node);
    jobs_->Tell(1, {record});
    core_.Advance(plan::kPageHeartbeatInterval);
  }
  std::vector<std::string> Called() const {
    std::vector<std::string> called;
    for (const PeerSpec& peer : peers_->peers()) called.push_back(peer.node + " " + peer.address);
    return called;
  }
  const std::vector<std::string> configured_ = {"n1 h1:7460", "n2 h2:7460"};
};

TEST_F(PeerSetTest, NodesOfAJobAreCalledWhereTheStoreKnowsThem) {
  EXPECT_EQ(Called(), configured_);
  StoreTells("n7", "h7:7460");
  StoreTells("n8", "");
  StoreTells("a0", "h0:7460");
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  for (const char* node : {"n7", "n8", "n9", "a0", "n1"}) JobTalksTo(node);
  EXPECT_EQ(Called(), (std::vector<std::string>{"n1 h1:7460", "n2 h2:7460", "n7 h7:7460"}))
      << "a0 calls us; nobody told where n8 and n9 are";
  EXPECT_EQ(Status().peers_size(), 3);

  jobs_->End(1);
  core_.Advance(plan::kPageHeartbeatInterval);
  EXPECT_EQ(Called(), configured_);
}

TEST_F(PeerSetTest, AJobThatNamesManyNodesMakesABoundedNumberOfCalls) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  for (int node = 0; node < 100; ++node) {
    StoreTells(absl::StrCat("o", node), absl::StrCat("h", node, ":7460"));
    JobTalksTo(absl::StrCat("o", node));
  }
  EXPECT_EQ(Called().size(), configured_.size() + PeerSet::kJobPeersMax);
}

// A cluster that starts makes no plan for each node that turns up.
TEST_F(PeerSetTest, PlansOfManyNodesKeepADistance) {
  const size_t before = page_->plans().size();
  for (int node = 0; node < 300; ++node) StoreTells(absl::StrCat("o", node), "");
  EXPECT_LE(page_->plans().size(), before + kPlanAtOnceNodes);
  core_.Advance(300 * kPlanIntervalPerNode);
  EXPECT_LE(page_->plans().size(), before + kPlanAtOnceNodes + 2);
  const auto& nics = page_->plans().back().nics;
  EXPECT_TRUE(std::any_of(nics.begin(), nics.end(), [](const plan::PlannedNic& nic) { return nic.node == "o299"; }));
}

// Its jobs have nobody else to tell them.
TEST_F(PeerSetTest, TheOwnNicsDoNotWaitForThePlansOfOthers) {
  for (int node = 0; node < 300; ++node) StoreTells(absl::StrCat("o", node), "");
  core_.Advance(300 * kPlanIntervalPerNode);
  StoreTells("p0", "");
  StoreTells("p1", "");
  EXPECT_FALSE(page_->Find("p1", "rail0").has_value()) << "nothing is waited for";
  links_->Set("eth1", false);
  Settle();
  EXPECT_EQ(Weight("n0", "rail1"), 0);
}

// A sign of life is no change, and no other view goes out for it.
TEST_F(PeerSetTest, AKeepAliveChangesNothing) {
  v1::NodeView view = PeerView(1, v1::HEALTHY);
  view.set_protocol(kPeerProtocol);
  peers_->Receive("n1", view);
  Settle();
  const size_t pushed = peers_->pushed().size();
  const size_t plans = page_->plans().size();
  for (int i = 0; i < 100; ++i) peers_->Receive("n1", view);
  Settle();
  EXPECT_EQ(peers_->pushed().size(), pushed);
  EXPECT_EQ(page_->plans().size(), plans);
}

}  // namespace
}  // namespace r2cc::daemon
