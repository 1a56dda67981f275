#include "plan/collective/ways.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::plan {
namespace {

// 8 Gbit/s a node: the rails are the limit, and not the processors.
constexpr CollNetOffer kSlow{.is_there = true, .node_bytes_per_s = 1e9};

SeatNodes Nodes(std::vector<uint32_t> kept) {
  const auto count = static_cast<uint32_t>(kept.size());
  return {.kept_permille = std::move(kept), .ranks = count, .channels = 8};
}

TEST(Ways, WithoutALossNothingChanges) {
  EXPECT_EQ(DecideWay(Nodes({1000, 1000, 1000, 1000}), kSlow), WayDecision());
  // Eight GPUs a node: NCCL's own tree would be another way.
  SeatNodes many = Nodes({1000, 1000, 1000});
  many.ranks = 24;
  EXPECT_EQ(DecideWay(many, kSlow), WayDecision());
}

TEST(Ways, CollNetWhereNoSeatGains) {
  // A quarter of one of four: the tree's 2.1 D/B is no better than the ring's 2.0. Measured: CollNet takes 0.90 to 0.92 of the ring.
  const WayDecision decision = DecideWay(Nodes({1000, 750, 1000, 1000}), kSlow);
  EXPECT_EQ(decision.way, Way::kCollNet);
  EXPECT_EQ(decision.order, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_NEAR(decision.over_usual, 0.90, 0.01);
}

// Measured with four nodes and one of four rails lost, in two runs: 1.03 and 1.08 of the ring at 16 MiB, 0.95 and 0.98 at 64 MiB.
TEST(Ways, CollNetsFillDecidesFromWhichSizeItGains) {
  const SeatNodes nodes = Nodes({1000, 750, 1000, 1000});
  CollNetOffer offer = kSlow;
  const uint64_t least = DecideWay(nodes, offer).bytes_min;
  EXPECT_GT(least, uint64_t{16} << 20);
  EXPECT_LE(least, uint64_t{64} << 20);
  // The user cannot ask for what is slower, and can ask for less.
  offer.bytes_min = 16 << 20;
  EXPECT_EQ(DecideWay(nodes, offer).bytes_min, least);
  offer.bytes_min = 128 << 20;
  EXPECT_EQ(DecideWay(nodes, offer).bytes_min, offer.bytes_min);
  // At that size the gain is the least that is asked, for any loss.
  for (const uint32_t kept : {800U, 750U, 700U}) {
    const WayDecision decision = DecideWay(Nodes({1000, kept, 1000, 1000}), kSlow);
    ASSERT_EQ(decision.way, Way::kCollNet) << kept;
    const double fill = kCollNetFillBytes / static_cast<double>(decision.bytes_min) / UsualTime(Nodes({1000, kept, 1000, 1000}));
    EXPECT_NEAR(decision.over_usual + fill, 1 - kSeatGain, 1e-6) << kept;
  }
}

TEST(Ways, TheSeatWhereItIsAsGood) {
  const WayDecision decision = DecideWay(Nodes({1000, 500, 1000, 1000}), kSlow);
  EXPECT_EQ(decision.way, Way::kTree);
  EXPECT_EQ(decision, DecideWay(Nodes({1000, 500, 1000, 1000}), {}));
  // And no CollNet is none.
  EXPECT_EQ(DecideWay(Nodes({1000, 750, 1000, 1000}), {}).way, Way::kUsual);
}

TEST(Ways, ProcessorsAreALimit) {
  // 32 Gbit/s a node and one process: measured, CollNet takes 1.01 of the ring.
  CollNetOffer fast{.is_there = true, .node_bytes_per_s = 4e9};
  EXPECT_EQ(DecideWay(Nodes({1000, 750, 1000, 1000}), fast).way, Way::kUsual);
  // Two processes a node share the work, and their ring is longer.
  SeatNodes two = Nodes({1000, 750, 1000, 1000});
  two.ranks = 8;
  EXPECT_NE(DecideWay(two, fast).way, Way::kUsual);
  // The user answers for the processors.
  fast.bytes_min = 1 << 20;
  const WayDecision asked = DecideWay(Nodes({1000, 750, 1000, 1000}), fast);
  EXPECT_EQ(asked.way, Way::kCollNet);
  EXPECT_EQ(asked.bytes_min, DecideWay(Nodes({1000, 750, 1000, 1000}), kSlow).bytes_min);
  // A bandwidth that is not known may be any.
  EXPECT_EQ(DecideWay(Nodes({1000, 750, 1000, 1000}), {.is_there = true}).way, Way::kUsual);
}

TEST(Ways, TheOneInUseStaysForASmallDifference) {
  const WayDecision reduced = DecideWay(Nodes({1000, 750, 1000, 1000}), kSlow);
  for (uint32_t kept = 1; kept < 1000; ++kept) {
    const SeatNodes nodes = Nodes({1000, kept, 1000, 1000});
    const WayDecision fresh = DecideWay(nodes, kSlow);
    const WayDecision held = DecideWay(nodes, kSlow, reduced);
    if (held.way == fresh.way) continue;
    EXPECT_EQ(held.way, Way::kCollNet) << kept;
    EXPECT_LE(held.over_usual, fresh.way == Way::kUsual ? 1 - kSeatGain / 3 : fresh.over_usual / (1 - kSeatGain)) << kept;
  }
  EXPECT_EQ(DecideWay(Nodes({1000, 1000, 1000, 1000}), kSlow, reduced).way, Way::kUsual);
}

TEST(Ways, AnImpossibleJobGoesTheUsualWay) {
  EXPECT_EQ(DecideWay({}, kSlow).way, Way::kUsual);
  EXPECT_EQ(DecideWay(Nodes({500}), kSlow).way, Way::kUsual);
  SeatNodes few = Nodes({500, 1000, 1000});
  few.ranks = 2;
  EXPECT_EQ(DecideWay(few, kSlow).way, Way::kUsual);
  EXPECT_NE(DecideWay(Nodes({0, 1000, 1000}), kSlow).way, Way::kUsual);
}

}  // namespace
}  // namespace r2cc::plan
