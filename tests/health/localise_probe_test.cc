// The whole way from lost datagrams to verdicts, in simulated time: every single and double fault of 4 nodes with 4 rails, while other
// probes are lost or late.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "health/probe/probe_world.h"
#include "health/view/localise.h"

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;
constexpr int kNodes = 4;
constexpr int kRails = 4;

// `b` empty: the port `a`; otherwise the path between them.
struct Broken {
  NicKey a;
  NicKey b;
};

std::vector<Broken> EveryFault() {
  std::vector<Broken> all;
  for (int rail = 0; rail < kRails; ++rail)
    for (int node = 0; node < kNodes; ++node) {
      all.push_back({ProbeWorld::Port(node, rail), {}});
      for (int peer = node + 1; peer < kNodes; ++peer) all.push_back({ProbeWorld::Port(node, rail), ProbeWorld::Port(peer, rail)});
    }
  return all;
}

bool Breaks(const Broken& fault, const NicKey& from, const NicKey& to) {
  if (fault.b.node.empty()) return from == fault.a || to == fault.a;
  return (from == fault.a && to == fault.b) || (from == fault.b && to == fault.a);
}

bool IsDead(const std::vector<Broken>& faults, const NicKey& nic) {
  return std::any_of(faults.begin(), faults.end(), [&](const Broken& fault) { return fault.b.node.empty() && fault.a == nic; });
}

FaultKind Expected(const std::vector<Broken>& faults, const NicKey& nic) {
  if (IsDead(faults, nic)) return FaultKind::kPort;
  FaultKind kind = FaultKind::kNone;
  for (int node = 0; node < kNodes; ++node) {
    const NicKey other = {ProbeWorld::Name(node), nic.nic};
    if (other == nic) continue;
    const bool broken = std::any_of(faults.begin(), faults.end(), [&](const Broken& fault) { return Breaks(fault, nic, other); });
    if (broken && !IsDead(faults, other)) return FaultKind::kPath;
    if (broken) kind = FaultKind::kPeers;
  }
  return kind;
}

// What all nodes together know.
ProbeMatrix MatrixOf(ProbeWorld* world) {
  ProbeMatrix matrix;
  for (int node = 0; node < world->nodes(); ++node)
    for (const RailPairStatus& pair : world->prober(node).Pairs()) matrix.Add(pair.key.own, pair.key.peer, VerdictOf(pair.state));
  return matrix;
}

// Two in a hundred lost and every tenth late by up to 60 ms.
void ExpectFound(const std::vector<Broken>& faults, uint64_t seed) {
  ProbeWorld world(kNodes, kRails, seed);
  uint64_t random = seed;
  bool broken = false;
  world.set_path([&](const NicKey& from, const NicKey& to) -> std::optional<Nanos> {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const uint64_t dice = random >> 33;
    if (dice % 50 == 0) return std::nullopt;
    if (broken)
      for (const Broken& fault : faults)
        if (Breaks(fault, from, to)) return std::nullopt;
    return dice % 10 == 1 ? static_cast<Nanos>(dice % 60) * kMs : kMs / 5;
  });
  world.Run(1000 * kMs);
  broken = true;
  const auto wrong = [&] {
    const ProbeMatrix matrix = MatrixOf(&world);
    for (int node = 0; node < kNodes; ++node)
      for (int rail = 0; rail < kRails; ++rail) {
        const NicKey nic = ProbeWorld::Port(node, rail);
        if (Localise(matrix, nic).kind != Expected(faults, nic)) return nic.ToString() + " " + FaultText(nic, Localise(matrix, nic));
      }
    return std::string();
  };
  ASSERT_TRUE(world.Run(1500 * kMs, [&] { return wrong().empty(); })) << wrong() << ", seed " << seed;
  // It stays so.
  world.Run(300 * kMs);
  ASSERT_EQ(wrong(), "") << "seed " << seed;
}

TEST(LocaliseProbe, EverySingleFault) {
  const std::vector<Broken> all = EveryFault();
  ASSERT_EQ(all.size(), 40U);
  for (size_t i = 0; i < all.size(); ++i) ExpectFound({all[i]}, i + 1);
}

TEST(LocaliseProbe, EveryDoubleFault) {
  const std::vector<Broken> all = EveryFault();
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j) ExpectFound({all[i], all[j]}, i * 100 + j);
}

// With one rail the daemons' words over another way bear witness.
class OneRail {
 public:
  OneRail(int nodes, uint64_t seed) : world_(nodes, 1, seed) {
    world_.set_peer_messages(true);
    world_.Run(5000 * kMs + static_cast<Nanos>(seed) * 13 * kMs);
    world_.set_path([](const NicKey& from, const NicKey& to) -> std::optional<Nanos> {
      if (Breaks({ProbeWorld::Port(1, 0), {}}, from, to)) return std::nullopt;
      return kMs / 10;
    });
  }
  // Until so many pairs are silent.
  bool RunUntilSilent(int wanted) {
    return world_.Run(5000 * kMs, [&] {
      int silent = 0;
      for (int node = 0; node < world_.nodes(); ++node)
        for (const RailPairStatus& pair : world_.prober(node).Pairs()) silent += pair.state == PairState::kSilent;
      return silent == wanted;
    });
  }
  Fault FaultOf(int node) { return Localise(MatrixOf(&world_), ProbeWorld::Port(node, 0)); }

 private:
  ProbeWorld world_;
};

TEST(LocaliseProbe, TheOnlyRailIsDeadWhereThreeOthersAnswerEachOther) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    OneRail world(4, seed);
    ASSERT_TRUE(world.RunUntilSilent(6)) << seed;
    EXPECT_EQ(world.FaultOf(1).kind, FaultKind::kPort) << seed;
    EXPECT_TRUE(world.FaultOf(1).unusable) << seed;
    EXPECT_EQ(world.FaultOf(2).kind, FaultKind::kPeers) << seed;
  }
}

TEST(LocaliseProbe, WithTwoNodesOfOneRailTheFaultyEndIsUnknown) {
  OneRail world(2, 1);
  ASSERT_TRUE(world.RunUntilSilent(2));
  EXPECT_EQ(world.FaultOf(1).kind, FaultKind::kInconclusive);
  EXPECT_FALSE(world.FaultOf(1).missing.empty());
}

}  // namespace
}  // namespace r2cc::health
