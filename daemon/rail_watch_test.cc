#include "daemon/rail_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"
#include "health/io/fake_datagram.h"

namespace r2cc::daemon {
namespace {

using health::EvidenceKind;
using health::NicKey;

constexpr Nanos kMs = kNanosPerMs;

// Daemons reduced to their rail watches and views, in simulated time. Views travel in a millisecond.
class RailWatchTest : public testing::Test {
 protected:
  struct Node {
    std::string name;
    std::unique_ptr<health::FakeDatagrams> datagrams;
    std::unique_ptr<health::ClusterView> view;
    std::unique_ptr<RailWatch> watch;
    health::NodeState own;
    std::vector<health::Evidence> seen;
  };

  static std::string Name(int node) { return "n" + std::to_string(node); }
  static NicKey Port(int node, int rail) { return {Name(node), "rail" + std::to_string(rail)}; }
  static std::string Address(int node, int rail) { return "10.0." + std::to_string(rail) + "." + std::to_string(node + 1); }

  void Make(int nodes, int rails, const std::map<std::string, NicKey>& cables_of_n0 = {}) {
    for (int node = 0; node < nodes; ++node) {
      Node& one = *nodes_.emplace_back(std::make_unique<Node>());
      one.name = Name(node);
      one.datagrams = std::make_unique<health::FakeDatagrams>(&net_);
      one.view = std::make_unique<health::ClusterView>(one.name);
      std::vector<health::NicIdentity> nics;
      one.own.node = one.name;
      for (int rail = 0; rail < rails; ++rail) {
        nics.push_back({.name = Port(node, rail).nic, .interface = "eth" + std::to_string(rail), .address = Address(node, rail)});
        one.own.nics.push_back({.identity = nics.back(), .state = health::NicState::kHealthy, .link_up = true});
      }
      std::map<std::string, NicKey> cables = node == 0 ? cables_of_n0 : std::map<std::string, NicKey>();
      if (node > 0)
        for (const auto& [nic, other] : cables_of_n0)
          if (other.node == one.name) cables[other.nic] = {"n0", nic};
      one.watch = std::make_unique<RailWatch>(
          one.name, nics, 100 + node, cables, one.view.get(), RailWatch::Seams{&core_, one.datagrams.get()},
          RailWatch::Outputs{[&one](const health::Evidence& evidence) { one.seen.push_back(evidence); }, [this, &one] { Publish(&one); }});
      for (int rail = 0; rail < rails; ++rail) one.watch->SetLink(Port(node, rail).nic, true);
    }
    for (auto& node : nodes_) node->watch->Start(7460);
    std::set<std::string> all;
    for (auto& node : nodes_) all.insert(node->name);
    for (auto& node : nodes_) node->watch->SetJobPeers(all);
    core_.Advance(1500 * kMs);
  }
  void TearDown() override {
    for (auto& node : nodes_) node->watch->Stop();
  }

  void Publish(Node* node) {
    core_.RunAfter(0, [this, node] {
      node->watch->Fill(&node->own);
      ++node->own.epoch.counter;
      node->view->SetOwn(node->own, core_.Now());
      core_.RunAfter(kMs, [this, state = node->own] {
        for (auto& other : nodes_)
          if (other->view->Merge(state, core_.Now()) == health::ClusterView::Merged::kNew) other->watch->OnView();
      });
    });
  }

  // From now on daemons hear of each other beside the rails.
  void HearEachOther() {
    for (auto& node : nodes_)
      for (auto& other : nodes_)
        if (node != other) node->watch->Heard(other->name);
    core_.RunAfter(500 * kMs, [this] { HearEachOther(); });
  }

  void Break(std::function<bool(const std::string& from, const std::string& to)> broken) {
    net_.set_path([broken = std::move(broken)](const auto& from, const auto& to) -> std::optional<Nanos> {
      if (broken(from.address, to.address)) return std::nullopt;
      return kMs / 10;
    });
  }
  void BreakPort(int node, int rail) {
    Break([address = Address(node, rail)](const auto& from, const auto& to) { return from == address || to == address; });
  }
  void BreakPath(const std::string& a, const std::string& b) {
    Break([a, b](const auto& from, const auto& to) { return (from == a && to == b) || (from == b && to == a); });
  }
  void Mend() {
    net_.set_path([](const auto&, const auto&) { return kMs / 10; });
  }

  // The kinds that `node` was told about its `nic`, in order.
  std::vector<EvidenceKind> Told(int node, int rail) {
    std::vector<EvidenceKind> kinds;
    for (const auto& one : nodes_[node]->seen)
      if (one.subject == Port(node, rail)) kinds.push_back(one.kind);
    return kinds;
  }
  // The other ends of the paths that `node` says are broken.
  std::vector<NicKey> BrokenPaths(int node) {
    std::vector<NicKey> peers;
    for (const auto& pair : nodes_[node]->own.pairs)
      if (pair.broken) peers.push_back(pair.peer);
    return peers;
  }
  size_t TellingsOfAll() {
    size_t count = 0;
    for (auto& node : nodes_) count += node->seen.size();
    return count;
  }

  FakeExecutor core_;
  health::FakeDatagramNet net_{&core_};
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(RailWatchTest, AHealthyClusterSaysNothing) {
  Make(4, 4);
  core_.Advance(60'000 * kMs);
  EXPECT_EQ(TellingsOfAll(), 0U);
  EXPECT_EQ(nodes_[0]->own.pairs.size(), 12U);
  EXPECT_EQ(nodes_[0]->own.nics[0].probe_port, 7460);
}

TEST_F(RailWatchTest, ADeadPortIsFailedByItsOwnDaemonAndExplainedByAll) {
  Make(4, 4);
  BreakPort(1, 2);
  core_.Advance(500 * kMs);
  ASSERT_EQ(Told(1, 2), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  EXPECT_EQ(
      nodes_[1]->seen[0].detail,
      "port of n1/rail2 (NIC, cable or switch port): silent to n0/rail2, n2/rail2, n3/rail2; n0/rail2, n2/rail2, n3/rail2 answer others");
  core_.Advance(5000 * kMs);
  EXPECT_EQ(TellingsOfAll(), 1U);
  for (auto& node : nodes_) EXPECT_EQ(node->watch->Verdict(Port(1, 2)).kind, health::FaultKind::kPort) << node->name;
  EXPECT_EQ(nodes_[0]->watch->Verdict(Port(0, 2)).kind, health::FaultKind::kPeers);
  Mend();
  core_.Advance(2000 * kMs);
  EXPECT_EQ(Told(1, 2), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
  EXPECT_EQ(TellingsOfAll(), 2U);
}

TEST_F(RailWatchTest, APathIsToldAtBothEndsAfterAWhile) {
  Make(4, 2);
  BreakPath(Address(0, 1), Address(3, 1));
  core_.Advance(900 * kMs);
  EXPECT_EQ(TellingsOfAll(), 0U);  // it might become a port's
  core_.Advance(1500 * kMs);
  EXPECT_EQ(Told(0, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(Told(3, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(nodes_[0]->seen[0].peer, Port(3, 1));
  EXPECT_EQ(BrokenPaths(0), std::vector<NicKey>{Port(3, 1)});
  EXPECT_EQ(BrokenPaths(3), std::vector<NicKey>{Port(0, 1)});
  EXPECT_TRUE(BrokenPaths(1).empty());
  Mend();
  core_.Advance(2000 * kMs);
  EXPECT_EQ(Told(0, 1), (std::vector<EvidenceKind>{EvidenceKind::kPathBroken, EvidenceKind::kPathBack}));
  EXPECT_EQ(TellingsOfAll(), 4U);
  EXPECT_TRUE(BrokenPaths(0).empty());
}

TEST_F(RailWatchTest, TwoNodesAloneDoubtAndSayWhatIsMissing) {
  Make(2, 2);
  BreakPort(1, 0);
  core_.Advance(5000 * kMs);
  const auto told = Told(0, 0);
  ASSERT_GE(told.size(), 2U);  // repeated, as doubts are forgotten
  EXPECT_EQ(told.front(), EvidenceKind::kRailDoubtful);
  EXPECT_EQ(told.back(), EvidenceKind::kRailDoubtful);
  EXPECT_NE(nodes_[0]->seen[0].detail.find("another node that probes both"), std::string::npos);
}

TEST_F(RailWatchTest, APortThatWasDeadFromTheBeginningIsDoubted) {
  BreakPort(1, 0);
  Make(3, 2);
  EXPECT_EQ(TellingsOfAll(), 0U);
  core_.Advance(6000 * kMs);
  ASSERT_FALSE(Told(1, 0).empty());
  EXPECT_EQ(Told(1, 0).front(), EvidenceKind::kRailDoubtful);
  EXPECT_EQ(nodes_[1]->seen[0].detail,
            "nobody ever answered n1/rail0 (n0/rail0 and 1 more were asked): a dead port, another VLAN, or a firewall that drops UDP");
  EXPECT_TRUE(Told(0, 0).empty());  // it answers n2
  Mend();
  const size_t told = Told(1, 0).size();
  core_.Advance(10'000 * kMs);
  EXPECT_LE(Told(1, 0).size(), told + 1);
}

TEST_F(RailWatchTest, TheOnlyRailOfANodeIsFailedByWhatTheOthersHear) {
  Make(4, 1);
  HearEachOther();
  core_.Advance(5000 * kMs);
  EXPECT_EQ(TellingsOfAll(), 0U);
  BreakPort(1, 0);
  core_.Advance(3000 * kMs);
  EXPECT_EQ(Told(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  EXPECT_EQ(TellingsOfAll(), 1U) << "the three others answer each other";
  EXPECT_NE(nodes_[1]->seen[0].detail.find("port of n1/rail0"), std::string::npos) << nodes_[1]->seen[0].detail;
  EXPECT_EQ(nodes_[0]->watch->Verdict(Port(1, 0)).kind, health::FaultKind::kPort);
  Mend();
  core_.Advance(5000 * kMs);
  EXPECT_EQ(Told(1, 0), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
}

TEST_F(RailWatchTest, TwoNodesWithOneRailDoubtEachOther) {
  Make(2, 1);
  HearEachOther();
  core_.Advance(5000 * kMs);
  BreakPort(1, 0);
  core_.Advance(6000 * kMs);
  for (int node = 0; node < 2; ++node) {
    ASSERT_FALSE(Told(node, 0).empty());
    for (const EvidenceKind kind : Told(node, 0)) EXPECT_EQ(kind, EvidenceKind::kRailDoubtful);
    EXPECT_NE(nodes_[node]->seen[0].detail.find("another node that probes both"), std::string::npos);
  }
}

TEST_F(RailWatchTest, ADirectCableFailsAtBothEnds) {
  Make(2, 2, {{"rail0", Port(1, 0)}});
  BreakPath(Address(0, 0), Address(1, 0));
  core_.Advance(600 * kMs);
  ASSERT_EQ(Told(0, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  ASSERT_EQ(Told(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  EXPECT_EQ(nodes_[0]->seen[0].detail, "cable between n0/rail0 and n1/rail0, or the port at one of its ends");
}

TEST_F(RailWatchTest, ADaemonThatIsGoneIsNoDeadRail) {
  Make(4, 2);
  nodes_[2]->watch->Stop();
  core_.Advance(10'000 * kMs);
  EXPECT_EQ(TellingsOfAll(), 0U);
}

TEST_F(RailWatchTest, AFrozenDaemonIsNoDeadRail) {
  Make(4, 2);
  for (const int rail : {0, 1}) net_.Freeze(Address(2, rail));
  core_.Advance(3000 * kMs);
  for (const int rail : {0, 1}) net_.Thaw(Address(2, rail));
  core_.Advance(3000 * kMs);
  EXPECT_EQ(TellingsOfAll(), 0U);
}

TEST_F(RailWatchTest, ADownLinkIsNotAskedForAndBeginsAgain) {
  Make(3, 2);
  nodes_[0]->watch->SetLink("rail0", false);
  Publish(nodes_[0].get());
  core_.Advance(2000 * kMs);
  EXPECT_EQ(nodes_[0]->own.nics[0].probe_port, 0);
  EXPECT_EQ(TellingsOfAll(), 0U);
  nodes_[0]->watch->SetLink("rail0", true);
  core_.Advance(2000 * kMs);
  EXPECT_EQ(nodes_[0]->own.nics[0].probe_port, 7460);
  EXPECT_EQ(nodes_[0]->own.pairs.size(), 4U);
  EXPECT_EQ(TellingsOfAll(), 0U);
}

TEST_F(RailWatchTest, OthersLendTheirEyesWhereNoJobUsesThem) {
  Make(4, 2);
  // Only n0 and n1 share a job; n2 and n3 probe in turn, and say nothing of what works.
  nodes_[0]->watch->SetJobPeers({"n1"});
  nodes_[1]->watch->SetJobPeers({"n0"});
  nodes_[2]->watch->SetJobPeers({});
  nodes_[3]->watch->SetJobPeers({});
  for (auto& node : nodes_) Publish(node.get());
  core_.Advance(2000 * kMs);
  EXPECT_TRUE(nodes_[2]->own.pairs.empty());
  BreakPath(Address(0, 1), Address(1, 1));
  core_.Advance(4000 * kMs);
  EXPECT_EQ(Told(0, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(Told(1, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(nodes_[2]->own.pairs.size(), 2U);
}

TEST_F(RailWatchTest, ATakenPortIsNoReasonToGiveUp) {
  health::FakeDatagrams other(&net_);
  const auto taken = other.Open({"eth0", Address(0, 0), 7460}, {[](const auto&) {}, [](const auto&) {}});
  ASSERT_TRUE(taken.ok());
  Make(2, 2);
  EXPECT_NE(nodes_[0]->own.nics[0].probe_port, 7460);
  EXPECT_NE(nodes_[0]->own.nics[0].probe_port, 0);
  EXPECT_EQ(nodes_[0]->own.pairs.size(), 2U);
}

}  // namespace
}  // namespace r2cc::daemon
