// Faults of many ports at once, and of nodes whose pairs are mostly asked every few seconds.
#include <string>
#include <vector>

#include "base/log.h"
#include "daemon/rails/rail_watch_rig.h"

namespace r2cc::daemon {
namespace {

// The first to be failed do not explain away the others.
TEST_F(RailWatchTest, AWholeRailIsFailedOnAllNodes) {
  for (const int nodes : {3, 4, 7}) {
    SCOPED_TRACE(nodes);
    Make(nodes, 2);
    Break([](const auto& from, const auto&) { return from.starts_with("10.0.1."); });
    core_.Advance(1000 * kMs);
    for (int node = 0; node < nodes; ++node) EXPECT_EQ(KindsOf(node, 1), std::vector<EvidenceKind>{EvidenceKind::kRailSilent}) << node;
    Mend();
    core_.Advance(4000 * kMs);
    for (int node = 0; node < nodes; ++node)
      EXPECT_EQ(KindsOf(node, 1), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers})) << node;
    EXPECT_EQ(EvidenceCount(), 2U * static_cast<size_t>(nodes));
    for (auto& node : nodes_) node->watch->Stop();
    nodes_.clear();
  }
}

// Half of a rail's ports at once: a leaf switch, whose failure no kernel sees. Most pairs are asked every few seconds.
TEST_F(RailWatchTest, TheHalfOfARailIsFailedAndNobodyElse) {
  Make(24, 2);
  for (int node = 0; node < 24; ++node) {
    std::set<std::string> peers;
    for (const int step : {1, 2, 7, 17, 22, 23}) peers.insert(Name((node + step) % 24));
    nodes_[node]->watch->SetJobPeers({{"uid 0", peers}});
  }
  core_.Advance(10'000 * kMs);
  const auto dead = [](const std::string& address) { return address.starts_with("10.0.1.") && std::stoi(address.substr(7)) <= 12; };
  Break([&](const auto& from, const auto& to) { return dead(from) || dead(to); });
  core_.Advance(2000 * kMs);
  for (int node = 0; node < 12; ++node) EXPECT_EQ(KindsOf(node, 1), std::vector<EvidenceKind>{EvidenceKind::kRailSilent}) << node;
  core_.Advance(5000 * kMs);
  EXPECT_EQ(EvidenceCount(), 12U);
  Mend();
  core_.Advance(10'000 * kMs);
  for (int node = 0; node < 12; ++node)
    EXPECT_EQ(KindsOf(node, 1), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers})) << node;
  EXPECT_EQ(EvidenceCount(), 24U);
}

// No rail of theirs answers, so that nobody can distinguish their daemons from their rails, and when they are back they are just that.
TEST_F(RailWatchTest, NodesThatAreSilentForAWhileSuspectNobody) {
  Make(24, 4);
  for (int node = 0; node < 24; ++node) {
    std::set<std::string> peers;
    for (const int step : {1, 2, 7, 17, 22, 23}) peers.insert(Name((node + step) % 24));
    nodes_[node]->watch->SetJobPeers({{"uid 0", peers}});
  }
  core_.Advance(10'000 * kMs);
  const auto gone = [](const std::string& address) { return std::stoi(address.substr(address.rfind('.') + 1)) <= 8; };
  for (const Nanos away : {300 * kMs, 2000 * kMs, 9000 * kMs}) {
    Break([&](const auto& from, const auto& to) { return gone(from) || gone(to); });
    core_.Advance(away);
    Mend();
    core_.Advance(5000 * kMs);
    ASSERT_EQ(EvidenceCount(), 0U) << away;
  }
}

// Most pairs of a large cluster are asked every few seconds: what they answered before the fault does not make a dead port alive.
TEST_F(RailWatchTest, OldAnswersOfManyDoNotKeepADeadPortAlive) {
  Make(24, 2);
  for (int node = 0; node < 24; ++node) {
    std::set<std::string> peers;
    for (const int step : {1, 2, 22, 23}) peers.insert(Name((node + step) % 24));
    nodes_[node]->watch->SetJobPeers({{"uid 0", peers}});
  }
  core_.Advance(10'000 * kMs);
  BreakPort(5, 1);
  core_.Advance(900 * kMs);
  EXPECT_EQ(KindsOf(5, 1), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  core_.Advance(1000 * kMs);
  Mend();
  core_.Advance(5000 * kMs);
  EXPECT_EQ(KindsOf(5, 1), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
}

// Everybody on a rail can make up addresses.
TEST_F(RailWatchTest, AddressesThatAreKeptOutFillNoLog) {
  Make(2, 1);
  core_.Advance(1000 * kMs);
  std::vector<std::string> lines;
  const ScopedLogCapture capture([&](Severity, const std::string& line) {
    if (line.find("rate limit") != std::string::npos) lines.push_back(line);
  });
  const auto hold_out = [&](int first, int seconds) {
    for (int i = first; i < first + seconds; ++i) {
      net_.Block({Address(1, 0), 7460}, {"10.9.0." + std::to_string(i), "10.8.0." + std::to_string(i)});
      core_.Advance(1000 * kMs);
    }
  };
  hold_out(0, 50);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("10.9.0.0"), std::string::npos) << lines[0];
  hold_out(50, 20);
  EXPECT_EQ(lines.size(), 2u);
}

// Somebody floods a port in a peer's name, or in those of all: nobody is judged by what is kept out, and by all others as before.
TEST_F(RailWatchTest, PeersWhoAreKeptOutFailNoNic) {
  Make(4, 2);
  net_.Block({Address(1, 0), 7460}, {Address(0, 0), Address(2, 0), Address(3, 0)});
  core_.Advance(10'000 * kMs);
  EXPECT_TRUE(KindsOf(1, 0).empty());
  EXPECT_EQ(nodes_[1]->own.nics[0].probe_trouble, "") << "it is judged";
  net_.Block({Address(1, 0), 7460}, {Address(0, 0)});
  core_.Advance(3000 * kMs);
  EXPECT_TRUE(KindsOf(1, 0).empty());
  BreakPort(1, 0);
  core_.Advance(1000 * kMs);
  EXPECT_EQ(KindsOf(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent}) << "by those that are not kept out";
}

}  // namespace
}  // namespace r2cc::daemon
