#include "health/probe/rail_prober.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/core/hash.h"
#include "health/probe/probe_world.h"

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;

int Count(const RailProber& prober, PairState state) {
  const auto pairs = prober.Pairs();
  return static_cast<int>(std::count_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.state == state; }));
}

int CountAll(ProbeWorld& world, PairState state) {
  int count = 0;
  for (int node = 0; node < world.nodes(); ++node) count += Count(world.prober(node), state);
  return count;
}

ProbeWorld::Path DeadPort(const NicKey& port) {
  return [port](const NicKey& from, const NicKey& to) -> std::optional<Nanos> {
    if (from == port || to == port) return std::nullopt;
    return kMs / 10;
  };
}

TEST(RailProber, AHealthyClusterIsUpAndWithinTheBudget) {
  ProbeWorld world(4, 4);
  world.Run(500 * kMs);
  EXPECT_EQ(CountAll(world, PairState::kUp), 48);
  const uint64_t before = world.prober(0).counts().sent;
  world.Run(10'000 * kMs);
  const double per_s = static_cast<double>(world.prober(0).counts().sent - before) / 10;
  // Each of the 12 pairs ten times a second, by one end or the other.
  EXPECT_GT(per_s, 50);
  EXPECT_LT(per_s, 80);
}

TEST(RailProber, TheBudgetHoldsInEveryCase) {
  ProbeWorld world(8, 8);
  world.Run(2000 * kMs);
  world.set_path(DeadPort(ProbeWorld::Port(3, 2)));
  for (int second = 0; second < 5; ++second) {
    const uint64_t before = world.prober(3).counts().sent;
    world.Run(1000 * kMs);
    EXPECT_LE(world.prober(3).counts().sent - before, 210U);
  }
}

TEST(RailProber, ProbesAreSpreadInTime) {
  ProbeWorld world(4, 4);
  world.Run(1000 * kMs);
  size_t most = 0;
  for (int i = 0; i < 200; ++i) most = std::max(most, world.prober(0).Tick(world.now() + (i + 1) * kRailProbeTick).size());
  EXPECT_LE(most, 8U);
}

// A daemon that wakes up, be it to ping or to answer, does it for all rails; and one ping a pair suffices for both its ends.
TEST(RailProber, PairsWithANodeGoTogetherAndTheEndsTakeTurns) {
  constexpr int kRails = 8;
  ProbeWorld world(2, kRails);
  world.Run(2000 * kMs);
  int datagrams = 0;
  std::set<std::pair<Nanos, std::string>> moments;
  world.set_path([&](const NicKey& from, const NicKey&) {
    ++datagrams;
    moments.emplace(world.now(), from.node);
    return kMs / 10;
  });
  const uint64_t before = world.prober(0).counts().sent;
  world.Run(10'000 * kMs);
  // Ten pings a second of each pair, and as many answers.
  EXPECT_GE(datagrams, 2 * 10 * 10 * kRails * 3 / 4);
  EXPECT_LE(datagrams, 2 * 10 * 10 * kRails * 5 / 4);
  EXPECT_LE(static_cast<int>(moments.size()), datagrams / kRails * 5 / 4);
  const auto share = static_cast<double>(world.prober(0).counts().sent - before) / (datagrams / 2);
  EXPECT_GT(share, 0.25);
  EXPECT_LT(share, 0.75);
}

TEST(RailProber, AnEndThatIsNotPingedPingsAloneAtTheFullRate) {
  ProbeWorld world(2, 2);
  world.prober(1).SetTargets({}, world.now());
  world.Run(2000 * kMs);
  const uint64_t before = world.prober(0).counts().sent;
  world.Run(10'000 * kMs);
  EXPECT_GE(world.prober(0).counts().sent - before, 160U);
  EXPECT_LE(world.prober(0).counts().sent - before, 240U);
}

TEST(RailProber, TicksAreSeldomNeededUntilSomethingIsNotAnswered) {
  ProbeWorld world(2, 2);
  world.Run(2000 * kMs);
  const auto needed = [&](Nanos by) {
    int ticks = 0;
    Nanos next = world.prober(0).next_tick();
    world.Run(by, [&] {
      ticks += world.now() >= next;
      next = std::max(next, world.prober(0).next_tick());
      return false;
    });
    return ticks;
  };
  EXPECT_LE(needed(2000 * kMs), 30);
  world.set_path(DeadPort(ProbeWorld::Port(1, 0)));
  world.Run(200 * kMs);
  EXPECT_LE(world.prober(0).next_tick() - world.now(), kRailProbeTick);
}

TEST(RailProber, ADeadPortFallsSilentAtBothEndsInTime) {
  Nanos worst = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ProbeWorld world(4, 4, seed);
    world.Run(1000 * kMs + static_cast<Nanos>(seed) * 7 * kMs);
    world.set_path(DeadPort(ProbeWorld::Port(1, 2)));
    const Nanos dead = world.now();
    ASSERT_TRUE(world.Run(1000 * kMs, [&] { return CountAll(world, PairState::kSilent) == 6; })) << seed;
    worst = std::max(worst, world.now() - dead);
    world.Run(2000 * kMs);
    ASSERT_EQ(CountAll(world, PairState::kSilent), 6) << seed;
    ASSERT_EQ(CountAll(world, PairState::kUp), 42) << seed;
  }
  EXPECT_LE(worst, 450 * kMs);
  RecordProperty("worst_ms", static_cast<int>(worst / kMs));
}

// With one rail a node has no second one to show that its peers are awake: their words over another way do.
TEST(RailProber, TheOnlyRailFallsSilentWhileTheDaemonsExchangeMessages) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ProbeWorld world(4, 1, seed);
    world.set_peer_messages(true);
    world.Run(5000 * kMs + static_cast<Nanos>(seed) * 13 * kMs);
    ASSERT_EQ(CountAll(world, PairState::kUp), 12) << seed;
    world.set_path(DeadPort(ProbeWorld::Port(1, 0)));
    const Nanos dead = world.now();
    ASSERT_TRUE(world.Run(5000 * kMs, [&] { return CountAll(world, PairState::kSilent) == 6; })) << seed;
    EXPECT_LE(world.now() - dead, 2500 * kMs) << seed;
    world.Run(3000 * kMs);
    EXPECT_EQ(CountAll(world, PairState::kSilent), 6) << seed;
    world.set_path(nullptr);
    ASSERT_TRUE(world.Run(5000 * kMs, [&] { return CountAll(world, PairState::kUp) == 12; })) << seed;
  }
}

TEST(RailProber, ASilentDaemonIsNoDeadRail) {
  ProbeWorld world(3, 1);
  world.set_peer_messages(true);
  world.Run(3000 * kMs);
  world.Stop(1);
  world.Run(60'000 * kMs);
  EXPECT_EQ(CountAll(world, PairState::kSilent), 0);
  world.Wake(1);
  world.Run(5000 * kMs);
  EXPECT_EQ(CountAll(world, PairState::kUp), 6);
  // Nor is anything silent where the rail is the only way, and all words went with it.
  world.set_peer_messages(false);
  world.set_path(DeadPort(ProbeWorld::Port(1, 0)));
  world.Run(60'000 * kMs);
  EXPECT_EQ(CountAll(world, PairState::kSilent), 0);
}

TEST(RailProber, ReportsThatCameTogetherCountOnce) {
  ProbeWorld world(2, 1);
  world.Run(3000 * kMs);
  world.set_path(DeadPort(ProbeWorld::Port(1, 0)));
  for (int burst = 0; burst < 2; ++burst) {
    world.Run(600 * kMs);
    for (int i = 0; i < 10; ++i) world.prober(0).NoteAlive("n1", world.now());
  }
  world.Run(3000 * kMs);
  EXPECT_EQ(CountAll(world, PairState::kSilent), 0);
}

TEST(RailProber, SettledMeansThatAllAnswer) {
  ProbeWorld world(4, 4);
  EXPECT_FALSE(world.prober(0).Settled());
  world.Run(1000 * kMs);
  EXPECT_TRUE(world.prober(0).Settled());
  world.prober(3).SetLink("rail1", false, world.now());
  EXPECT_TRUE(world.prober(3).Settled()) << "a down link is not waited for";
  world.set_path(DeadPort(ProbeWorld::Port(1, 2)));
  world.Run(1000 * kMs);
  for (const int node : {0, 1, 2, 3}) EXPECT_FALSE(world.prober(node).Settled()) << node;
  world.set_path(nullptr);
  world.Run(2000 * kMs);
  for (const int node : {0, 1, 2, 3}) EXPECT_TRUE(world.prober(node).Settled()) << node;
}

TEST(RailProber, ItComesBackByItself) {
  ProbeWorld world(4, 4);
  world.Run(1000 * kMs);
  world.set_path(DeadPort(ProbeWorld::Port(1, 2)));
  world.Run(1000 * kMs);
  world.set_path(nullptr);
  EXPECT_TRUE(world.Run(1500 * kMs, [&] { return CountAll(world, PairState::kUp) == 48; }));
}

TEST(RailProber, AStoppedDaemonIsNoDeadRail) {
  ProbeWorld world(4, 4);
  world.Run(1000 * kMs);
  for (const Nanos stop : {50 * kMs, 300 * kMs, 5000 * kMs}) {
    world.Stop(1);
    EXPECT_FALSE(world.Run(stop, [&] { return CountAll(world, PairState::kSilent) > 0; })) << stop;
    world.Wake(1);
    EXPECT_FALSE(world.Run(1000 * kMs, [&] { return CountAll(world, PairState::kSilent) > 0; })) << stop;
    EXPECT_EQ(CountAll(world, PairState::kUp), 48) << stop;
  }
}

// When a node comes back that was silent on all rails, as after its leaf switches did, no rail of it is first and makes the
// others look dead.
TEST(RailProber, ANodeThatWasOutOfReachSuspectsNoRailWhenItIsBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ProbeWorld world(4, 4, seed);
    world.Run(1000 * kMs);
    for (const Nanos away : {100 * kMs, 700 * kMs, 3000 * kMs}) {
      world.set_path([](const NicKey& from, const NicKey& to) -> std::optional<Nanos> {
        if (from.node == "n1" || to.node == "n1") return std::nullopt;
        return kMs / 10;
      });
      ASSERT_FALSE(world.Run(away, [&] { return CountAll(world, PairState::kSilent) > 0; })) << seed << " " << away;
      world.set_path(nullptr);
      ASSERT_FALSE(world.Run(2000 * kMs, [&] { return CountAll(world, PairState::kSilent) > 0; })) << seed << " " << away;
      ASSERT_EQ(CountAll(world, PairState::kUp), 48) << seed << " " << away;
    }
  }
}

TEST(RailProber, DaemonsThatStopAndGoAtRandomSuspectNobody) {
  uint64_t random = 12345;
  const auto below = [&](uint64_t end) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((random >> 33) % end);
  };
  ProbeWorld world(4, 4);
  world.Run(1000 * kMs);
  for (int i = 0; i < 400; ++i) {
    const int node = below(4);
    world.Stop(node);
    ASSERT_FALSE(world.Run((below(150) + 1) * kMs, [&] { return CountAll(world, PairState::kSilent) > 0; })) << i;
    world.Wake(node);
    ASSERT_FALSE(world.Run((below(100) + 1) * kMs, [&] { return CountAll(world, PairState::kSilent) > 0; })) << i;
  }
}

TEST(RailProber, ATenthOfLossAndQueuesSuspectNobody) {
  uint64_t random = 777;
  ProbeWorld world(4, 4);
  world.set_path([&](const NicKey&, const NicKey&) -> std::optional<Nanos> {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    if (random >> 40 < (1U << 24) / 10) return std::nullopt;
    return static_cast<Nanos>(random >> 20) % (40 * kMs);
  });
  world.Run(2000 * kMs);
  EXPECT_FALSE(world.Run(150'000 * kMs, [&] { return CountAll(world, PairState::kSilent) > 0; })) << world.now();
}

TEST(RailProber, ADownLinkIsNotProbedAndItsPairsAreUnknown) {
  ProbeWorld world(3, 2);
  world.Run(1000 * kMs);
  world.prober(0).SetLink("rail1", false, world.now());
  EXPECT_EQ(Count(world.prober(0), PairState::kUnknown), 2);
  for (int i = 1; i < 50; ++i)
    for (const RailPing& ping : world.prober(0).Tick(world.now() + i * kRailProbeTick)) EXPECT_EQ(ping.nic, "rail0");
}

TEST(RailProber, ATickThatComesLateJudgesNothing) {
  ProbeWorld world(3, 2);
  world.Run(1000 * kMs);
  world.set_path(DeadPort(ProbeWorld::Port(1, 0)));
  world.Run(60 * kMs);
  const uint64_t revision = world.prober(0).revision();
  world.prober(0).Tick(world.now() + 1000 * kMs);
  EXPECT_EQ(world.prober(0).revision(), revision);
}

// A pair bears no witness for itself: with one pair to a node there is nothing to compare with.
TEST(RailProber, OneRailAloneIsNeverSilent) {
  ProbeWorld world(3, 1);
  world.Run(1000 * kMs);
  world.set_path(DeadPort(ProbeWorld::Port(1, 0)));
  EXPECT_FALSE(world.Run(10'000 * kMs, [&] { return CountAll(world, PairState::kSilent) > 0; }));
}

}  // namespace
}  // namespace r2cc::health
