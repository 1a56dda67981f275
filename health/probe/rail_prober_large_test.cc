// Large probes between provers in simulated time.
#include <gtest/gtest.h>

#include <algorithm>

#include "health/probe/probe_world.h"

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;

RailPairStatus PairOf(const ProbeWorld& world, const RailProber& prober, const NicKey& own, const NicKey& peer) {
  (void)world;
  for (const RailPairStatus& pair : prober.Pairs())
    if (pair.key.own == own && pair.key.peer == peer) return pair;
  return {};
}

class LargeProbesTest : public testing::Test {
 protected:
  RailPairStatus Pair(int node, int peer, int rail) {
    return PairOf(world_, world_.prober(node), ProbeWorld::Port(node, rail), ProbeWorld::Port(peer, rail));
  }
  bool AllPass() {
    for (int node = 0; node < world_.nodes(); ++node)
      for (const RailPairStatus& pair : world_.prober(node).Pairs())
        if (pair.large != PairVerdict::kAnswering) return false;
    return true;
  }
  // The packets from or to this port.
  void LimitPort(int node, int rail, size_t bytes) {
    world_.set_limit([port = ProbeWorld::Port(node, rail), bytes](const NicKey& from, const NicKey& to) {
      return from == port || to == port ? bytes : size_t{9216};
    });
  }

  ProbeWorld world_{3, 2};
};

TEST_F(LargeProbesTest, ANodeThatDoesNotAcceptThemGetsNone) {
  for (int node = 0; node < 3; ++node)
    for (int rail = 0; rail < 2; ++rail) world_.prober(node).SetMtu(ProbeWorld::Port(node, rail).nic, 9000);
  world_.Run(3 * kNanosPerSecond);
  EXPECT_EQ(world_.large(), 0u);
  EXPECT_EQ(Pair(0, 1, 0).large, PairVerdict::kUnknown);
}

TEST_F(LargeProbesTest, LargeProbesPassAndCostAFractionOfTheSmallOnes) {
  world_.SetMtu(9000);
  EXPECT_TRUE(world_.Run(2 * kNanosPerSecond, [this] { return AllPass(); }));
  const uint64_t sent = world_.prober(0).counts().sent;
  const uint64_t large = world_.large();
  world_.Run(10 * kNanosPerSecond);
  // The packets of all three nodes, with the answers: at most one for each interval of each of the 4 pairs.
  EXPECT_LE(world_.large() - large, 3 * 4 * 2 * 10 * 1000 / 260);
  EXPECT_LE(world_.prober(0).counts().sent - sent, 200u * 10);
  EXPECT_TRUE(AllPass());
}

TEST_F(LargeProbesTest, APortWhoseMtuWasResetIsKnownInUnderASecond) {
  world_.SetMtu(9000);
  world_.Run(3 * kNanosPerSecond);
  LimitPort(1, 0, 1500);
  const Nanos broken = world_.now();
  EXPECT_TRUE(world_.Run(2 * kNanosPerSecond, [this] {
    return Pair(0, 1, 0).large == PairVerdict::kSilent && Pair(2, 1, 0).large == PairVerdict::kSilent &&
           Pair(1, 0, 0).large == PairVerdict::kSilent && Pair(1, 2, 0).large == PairVerdict::kSilent;
  }));
  EXPECT_LT(world_.now() - broken, kNanosPerSecond);
  // Small ones pass, the others' large ones do, too, and that is fresh.
  EXPECT_EQ(Pair(0, 1, 0).verdict, PairVerdict::kAnswering);
  EXPECT_TRUE(world_.Run(200 * kMs, [this] { return Pair(0, 2, 0).large == PairVerdict::kAnswering; }));
  EXPECT_EQ(Pair(0, 1, 1).large, PairVerdict::kAnswering);
  EXPECT_EQ(Pair(0, 1, 0).loss.packet_bytes, 9000u);
  EXPECT_EQ(Pair(0, 1, 0).loss.passed_bytes, 1500u);

  LimitPort(1, 0, 9000);
  const Nanos mended = world_.now();
  EXPECT_TRUE(world_.Run(3 * kNanosPerSecond, [this] { return AllPass(); }));
  EXPECT_LT(world_.now() - mended, 1500 * kMs);
}

TEST_F(LargeProbesTest, OneWayIsNamed) {
  world_.SetMtu(9000);
  world_.Run(2 * kNanosPerSecond);
  world_.set_limit([](const NicKey& from, const NicKey&) { return from == ProbeWorld::Port(0, 0) ? size_t{1500} : size_t{9216}; });
  world_.Run(2 * kNanosPerSecond);
  EXPECT_EQ(Pair(0, 1, 0).loss.way, LargeLoss::Way::kThere);
  EXPECT_EQ(Pair(1, 0, 0).loss.way, LargeLoss::Way::kBack);
}

TEST_F(LargeProbesTest, AStoppedNodeLosesNothing) {
  world_.SetMtu(9000);
  world_.Run(2 * kNanosPerSecond);
  const uint64_t large = world_.large();
  world_.Stop(1);
  world_.Run(5 * kNanosPerSecond);
  EXPECT_LE(world_.large() - large, 200u) << "it is not filled with large ones";
  world_.Wake(1);
  for (int i = 0; i < 50; ++i) {
    world_.Run(20 * kMs);
    ASSERT_NE(Pair(0, 1, 0).large, PairVerdict::kSilent);
    ASSERT_NE(Pair(1, 0, 0).large, PairVerdict::kSilent);
  }
}

TEST_F(LargeProbesTest, ASilentPairIsNoLossOfLargeOnes) {
  world_.SetMtu(9000);
  world_.Run(2 * kNanosPerSecond);
  LimitPort(1, 0, 0);
  world_.Run(2 * kNanosPerSecond, [this] { return Pair(0, 1, 0).large == PairVerdict::kSilent; });
  EXPECT_EQ(Pair(0, 1, 0).verdict, PairVerdict::kSilent);
  EXPECT_EQ(Pair(0, 1, 0).large, PairVerdict::kUnknown);
}

TEST_F(LargeProbesTest, AKernelThatKnowsOfLessOnTheWayIsBelieved) {
  world_.SetMtu(9000);
  world_.Run(2 * kNanosPerSecond);
  RailProber& prober = world_.prober(0);
  RailPing ping;
  ping.nic = "rail0";
  ping.peer = ProbeWorld::Port(1, 0);
  ping.address = ping.peer.ToString();
  ping.length = 9000 - 28;
  prober.TooLarge(ping, world_.now());
  EXPECT_EQ(Pair(0, 1, 0).large, PairVerdict::kUnknown);
  LimitPort(1, 0, 8000);
  world_.Run(2 * kNanosPerSecond);
  EXPECT_EQ(Pair(0, 1, 0).large, PairVerdict::kAnswering) << "8000 pass";
  // The kernel forgets, and so does the prober.
  LimitPort(1, 0, 9000);
  world_.Run(65 * kNanosPerSecond);
  LimitPort(1, 0, 8000);
  world_.Run(2 * kNanosPerSecond);
  EXPECT_EQ(Pair(0, 1, 0).large, PairVerdict::kSilent);
}

}  // namespace
}  // namespace r2cc::health
