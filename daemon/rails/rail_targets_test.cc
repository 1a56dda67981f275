#include "daemon/rails/rail_targets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::daemon {
namespace {

using health::NicKey;

// As a daemon publishes it: takes probes on each NIC.
health::NodeState Node(const std::string& name, const std::vector<std::string>& nics) {
  health::NodeState state;
  state.node = name;
  state.epoch = {1, 1};
  state.probe_nonce = 77;
  for (const std::string& nic : nics) {
    health::NicStatus& status = state.nics.emplace_back();
    status.identity.name = nic;
    status.identity.address = name + "-" + nic;
    status.probe_port = 7460;
  }
  return state;
}

class RailTargetsTest : public testing::Test {
 protected:
  std::vector<health::RailTarget> Choose() const { return ChooseRailTargets("n0", {"r0", "r1"}, cables_, view_, job_peers_, suspected_); }
  // The other ends of the pairs with `nic`.
  std::set<NicKey> Peers(const std::string& nic) const {
    std::set<NicKey> peers;
    for (const health::RailTarget& target : Choose()) {
      EXPECT_EQ(target.key.own.node, "n0");
      if (target.key.own.nic == nic) peers.insert(target.key.peer);
    }
    return peers;
  }

  health::ClusterView view_{"n0"};
  std::map<std::string, NicKey> cables_;
  JobPeers job_peers_;
  std::set<NicKey> suspected_;
};

TEST_F(RailTargetsTest, JoinsNicsOfTheSameNameOrPlace) {
  view_.SetOwn(Node("n0", {"r0", "r1"}), 0);
  view_.Merge(Node("n1", {"r1", "r0"}), 0);
  view_.Merge(Node("n2", {"a", "b", "c"}), 0);
  EXPECT_EQ(Peers("r0"), (std::set<NicKey>{{"n1", "r0"}, {"n2", "a"}}));
  EXPECT_EQ(Peers("r1"), (std::set<NicKey>{{"n1", "r1"}, {"n2", "b"}}));
}

TEST_F(RailTargetsTest, ACableLeadsToItsOtherEndAlone) {
  view_.Merge(Node("n1", {"r0", "r1"}), 0);
  view_.Merge(Node("n2", {"r0", "r1"}), 0);
  cables_["r0"] = {"n2", "r1"};
  EXPECT_EQ(Peers("r0"), (std::set<NicKey>{{"n2", "r1"}}));
  EXPECT_EQ(Peers("r1"), (std::set<NicKey>{{"n1", "r1"}, {"n2", "r1"}}));
}

TEST_F(RailTargetsTest, NicsThatTakeNoProbesAreLeftOut) {
  health::NodeState deaf = Node("n1", {"r0", "r1"});
  deaf.probe_nonce = 0;
  view_.Merge(deaf, 0);
  health::NodeState half = Node("n2", {"r0", "r1"});
  half.nics[0].probe_port = 0;
  half.nics[1].identity.address.clear();
  view_.Merge(half, 0);
  EXPECT_TRUE(Choose().empty());
}

TEST_F(RailTargetsTest, JobsPeersAndSuspectedPortsAreActive) {
  for (const char* const name : {"n1", "n2", "n3"}) view_.Merge(Node(name, {"r0", "r1"}), 0);
  job_peers_ = {{"uid 1000", {"n1"}}};
  suspected_ = {{"n2", "r1"}};
  for (const health::RailTarget& target : Choose())
    EXPECT_EQ(target.active, target.key.peer.node == "n1" || target.key.peer == NicKey("n2", "r1")) << target.key.peer.ToString();
  EXPECT_EQ(Choose().size(), 6u);
}

TEST_F(RailTargetsTest, UnusedPairsAreLimited) {
  for (int node = 1; node <= 400; ++node) view_.Merge(Node("n" + std::to_string(node), {"r0", "r1"}), 0);
  for (int node = 301; node <= 400; ++node) job_peers_["uid 1000"].insert("n" + std::to_string(node));
  const std::vector<health::RailTarget> targets = Choose();
  const auto active = std::count_if(targets.begin(), targets.end(), [](const auto& target) { return target.active; });
  EXPECT_EQ(active, 200);
  EXPECT_EQ(targets.size(), 200 + kAuxiliaryPairsMax);
}

// A job that names every node of the cluster takes nobody's place among the pairs that are probed.
TEST_F(RailTargetsTest, AUserWhoNamesManyNodesLeavesTheOthersTheirs) {
  for (int node = 1; node <= 2000; ++node) view_.Merge(Node("n" + std::to_string(node), {"r0", "r1"}), 0);
  for (int node = 1; node <= 2000; ++node) job_peers_["uid 1000"].insert("n" + std::to_string(node));
  job_peers_["uid 1001"] = {"n7", "n8"};
  std::vector<health::RailTarget> targets = Choose();
  ASSERT_GT(targets.size(), health::kRailPairsMax);
  targets.resize(health::kRailPairsMax);
  // Numbers of users: the one with the fewest nodes comes first.
  constexpr uint32_t few = 0, many = 1;
  size_t crowd = 0;
  std::set<NicKey> others;
  for (const health::RailTarget& target : targets) {
    crowd += target.active && target.user == many;
    if (target.active && target.user == few) others.insert(target.key.peer);
  }
  EXPECT_EQ(others, (std::set<NicKey>{{"n7", "r0"}, {"n7", "r1"}, {"n8", "r0"}, {"n8", "r1"}}));
  EXPECT_EQ(crowd, kActivePairsPerUserMax);
}

}  // namespace
}  // namespace r2cc::daemon
