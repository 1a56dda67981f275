#include "netplugin/link/rate_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::net {
namespace {

constexpr Nanos kRound = 50 * kNanosPerMs;
constexpr uint64_t kFull = 3'000'000;  // bytes in a round at full rate

// A round in which every link is busy all the time at `fractions` of the full rate.
bool Round(RateWatch* watch, std::vector<double> fractions, Nanos busy = kRound, std::span<const LinkShare> shares = {}) {
  for (LinkId link = 0; link < fractions.size(); ++link)
    watch->Sample(link, static_cast<uint64_t>(fractions[link] * kFull * static_cast<double>(busy) / kRound), busy, kRound);
  const bool changed = watch->Judge(shares);
  watch->SharesChanged();
  return changed;
}

TEST(RateWatch, AQuarterOfTheRateIsSlowAfterThreeRoundsAndHasThatShare) {
  RateWatch watch(4);
  EXPECT_FALSE(Round(&watch, {1, 1, 0.25, 1})) << "the first does not count";
  EXPECT_FALSE(Round(&watch, {1, 1, 0.25, 1}));
  EXPECT_FALSE(Round(&watch, {1, 1, 0.25, 1}));
  EXPECT_TRUE(Round(&watch, {1, 1, 0.25, 1}));
  EXPECT_TRUE(watch.slow(2));
  EXPECT_EQ(watch.SharePermille(2), 250);
  EXPECT_EQ(watch.SharePermille(1), 1000);
  EXPECT_FALSE(Round(&watch, {1, 1, 0.26, 1})) << "too small a change";
}

TEST(RateWatch, ALinkWithLittleToDoIsNotSlow) {
  RateWatch watch(2);
  for (int i = 0; i < 20; ++i) {
    watch.Sample(0, kFull, kRound, kRound);
    // A tenth of the bytes, but in a tenth of the time.
    watch.Sample(1, kFull / 10, kRound / 10, kRound);
    EXPECT_FALSE(watch.Judge({}));
  }
}

TEST(RateWatch, ALinkThatLimitsNobodyIsNotSlow) {
  RateWatch watch(2);
  for (int i = 0; i < 20; ++i) {
    watch.Sample(0, kFull, kRound, kRound);
    watch.Sample(1, kFull / 20, kRound / 5, kRound);  // a quarter of the rate, idle most of the time
    EXPECT_FALSE(watch.Judge({}));
  }
}

TEST(RateWatch, ALinkThatBurstsMakesTheOthersNotSlow) {
  RateWatch watch(4);
  for (int i = 0; i < 20; ++i) {
    for (LinkId link : {0, 2, 3}) watch.Sample(link, kFull, kRound, kRound);
    watch.Sample(1, kFull, kRound / 4, kRound);  // a quarter of the time, four times the rate
    EXPECT_FALSE(watch.Judge({}));
  }
}

TEST(RateWatch, LinksThatBeginWithABurstMakeTheOthersNotSlow) {
  RateWatch watch(4);
  for (int i = 0; i < 5; ++i) Round(&watch, {1, 1, 1, 1});
  for (LinkId link : {1, 2}) watch.Forget(link);
  for (int i = 0; i < 20; ++i) {
    const double burst = i == 0 ? 10 : 1;
    EXPECT_FALSE(Round(&watch, {1, burst, burst, 1})) << i;
  }
}

TEST(RateWatch, NobodyIsComparedWithALinkThatBeganWithABurstAndHasNothingToDo) {
  RateWatch watch(4);
  Round(&watch, {1, 1, 1, 3});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&watch, {1, 1, 1})) << i;
}

TEST(RateWatch, NobodyIsComparedWithALinkThatIsGone) {
  RateWatch watch(4);
  for (int i = 0; i < 2; ++i) Round(&watch, {1, 1, 1, 3});
  watch.Forget(3);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&watch, {1, 1, 1})) << i;
}

TEST(RateWatch, APlaceThatJoinsOtherRailsIsNotJudgedAsBefore) {
  RateWatch watch(2);
  for (int i = 0; i < 5; ++i) Round(&watch, {1, 0.2});
  ASSERT_TRUE(watch.slow(1));
  watch.Clear(1);
  EXPECT_FALSE(watch.slow(1));
  EXPECT_EQ(watch.rate_bytes_per_s(1), 0);
}

TEST(RateWatch, TwoSlowLinksOfFourAreBothSlow) {
  RateWatch watch(4);
  for (int i = 0; i < 5; ++i) Round(&watch, {0.3, 1, 0.25, 1});
  EXPECT_TRUE(watch.slow(0));
  EXPECT_TRUE(watch.slow(2));
  EXPECT_FALSE(watch.slow(1));
}

TEST(RateWatch, OneBadRoundIsNoVerdict) {
  RateWatch watch(2);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&watch, {1, i % 4 == 0 ? 0.3 : 1}));
}

TEST(RateWatch, ASoundLinkIsSoundAgain) {
  RateWatch watch(2);
  for (int i = 0; i < 5; ++i) Round(&watch, {1, 0.2});
  ASSERT_TRUE(watch.slow(1));
  int rounds = 0;
  while (watch.slow(1) && rounds < 20) {
    Round(&watch, {1, 1});
    ++rounds;
  }
  EXPECT_FALSE(watch.slow(1));
  EXPECT_GE(rounds, 3);
  EXPECT_EQ(watch.SharePermille(1), 1000);
}

// What links of these ceilings have carried in a round in which the first was at its limit, if the second can move so much.
std::vector<LinkShare> Carried(uint16_t ceiling_permille, double fraction) {
  const double second = std::min(ceiling_permille / 1000.0, fraction);
  return {{.usable = true, .weight_permille = 1000, .carried_bytes = kFull},
          {.usable = true, .weight_permille = ceiling_permille, .carried_bytes = static_cast<uint64_t>(second * kFull)}};
}

TEST(RateWatch, ASoundLinkIsNotSlowForEverBecauseItsCeilingHoldsItBack) {
  for (const double moment : {0.1, 0.3, 0.5}) {
    RateWatch watch(2);
    for (int i = 0; i < 20; ++i) Round(&watch, {1, moment});
    ASSERT_TRUE(watch.slow(1)) << moment;
    int rounds = 0;
    for (; watch.slow(1) && rounds < 100; ++rounds) {
      const uint16_t ceiling_permille = watch.CeilingPermille(1);
      // It seems to move even less than it is allowed, the less the fewer chunks it has: the account errs.
      const double allowed = ceiling_permille / 1000.0;
      Round(&watch, {1, allowed * (0.6 + 0.4 * allowed)}, kRound, Carried(ceiling_permille, 1));
    }
    EXPECT_LE(rounds, 20) << moment;
  }
}

TEST(RateWatch, WhatIsCarriedWhileNobodyIsAtHisLimitSaysNothing) {
  RateWatch watch(2);
  for (int i = 0; i < 20; ++i) Round(&watch, {1, 0.25});
  for (int i = 0; i < 20; ++i) {
    for (LinkId link = 0; link < 2; ++link) watch.Sample(link, kFull / (link == 0 ? 1 : 4), kRound, 3 * kRound);
    watch.Judge(Carried(watch.CeilingPermille(1), 1));
    watch.SharesChanged();
  }
  EXPECT_EQ(watch.SharePermille(1), 250);
}

TEST(RateWatch, WhatWasCarriedBeforeIsNotOfThisRound) {
  RateWatch watch(2);
  std::vector<LinkShare> shares(3, LinkShare{.usable = true, .weight_permille = 1000});
  shares[2].usable = false;
  const auto round = [&](double fraction) {
    shares[0].carried_bytes += kFull;
    shares[1].carried_bytes += static_cast<uint64_t>(fraction * kFull);
    for (LinkId link = 0; link < 2; ++link) watch.Sample(link, static_cast<uint64_t>((link == 0 ? 1 : fraction) * kFull), kRound, kRound);
    watch.Judge(shares);
  };
  for (int i = 0; i < 100; ++i) round(1);
  for (int i = 0; i < 6; ++i) round(0.25);
  EXPECT_TRUE(watch.slow(1));
}

TEST(RateWatch, WaitsUntilSomethingWasCarried) {
  constexpr uint64_t kChunk = 128 * 1024;
  RateWatch watch(2);
  std::vector<LinkShare> shares(3, LinkShare{.usable = true, .weight_permille = 1000});
  shares[2].usable = false;
  for (int i = 0; i < 20; ++i) {
    shares[0].carried_bytes += kChunk;
    shares[1].carried_bytes += i % 2 * kChunk;
    // At their limits both, and the second seems the slower one for what it carries.
    for (LinkId link = 0; link < 2; ++link) watch.Sample(link, kFull / (link == 0 ? 1 : 3), kRound, kRound);
    watch.Judge(shares);
    EXPECT_EQ(watch.slow(1), i >= 11) << i << ": three rounds of four chunks";
  }
  EXPECT_EQ(watch.SharePermille(1), 500);
}

TEST(RateWatch, ALinkOfLittleWeightIsNotSlowForMovingNoMore) {
  RateWatch watch(2);
  for (int i = 0; i < 20; ++i) {
    Round(&watch, {1, 0.3}, kRound, Carried(300, 1));
    EXPECT_FALSE(watch.slow(1));
  }
}

TEST(RateWatch, ASlowLinkStaysAtWhatItMoves) {
  for (const double fraction : {0.05, 0.25, 0.55, 0.75}) {
    RateWatch watch(2);
    for (int i = 0; i < 20; ++i) Round(&watch, {1, std::min(0.3, fraction)});
    for (int i = 0; i < 100; ++i) Round(&watch, {1, fraction}, kRound, Carried(watch.CeilingPermille(1), fraction));
    EXPECT_TRUE(watch.slow(1));
    EXPECT_NEAR(watch.SharePermille(1), fraction * 1000, 50);
    EXPECT_EQ(watch.CeilingPermille(1), watch.SharePermille(1) + 100);
    EXPECT_EQ(watch.CeilingPermille(0), 1000);
  }
}

TEST(RateWatch, AFewBytesSayNothing) {
  RateWatch watch(2);
  for (int i = 0; i < 100; ++i) {
    watch.Sample(0, 1000, kNanosPerMs / 10, kRound);
    watch.Sample(1, 10, kNanosPerMs / 10, kRound);
    EXPECT_FALSE(watch.Judge({}));
  }
}

TEST(RateWatch, ANewIncarnationIsMeasuredAnewAndJudgedAsBefore) {
  RateWatch watch(2);
  for (int i = 0; i < 5; ++i) Round(&watch, {1, 0.2});
  watch.Forget(1);
  EXPECT_TRUE(watch.slow(1));
  EXPECT_EQ(watch.SharePermille(1), 200);
}

TEST(RateWatch, TheSlowestIsOneThatMayCarryChunksAndIsKnown) {
  RateWatch watch(4);
  std::vector<LinkShare> shares(4, LinkShare{.usable = true, .weight_permille = 1000});
  EXPECT_EQ(watch.SlowestBytesPerSecond(shares), 0);
  for (LinkId link = 0; link < 3; ++link) watch.Sample(link, kFull / (link + 1), kRound, kRound);
  const double rate = watch.rate_bytes_per_s(2);
  EXPECT_GT(rate, 0);
  EXPECT_EQ(watch.SlowestBytesPerSecond(shares), rate) << "of the last one nothing is known";
  shares[2].usable = false;
  EXPECT_EQ(watch.SlowestBytesPerSecond(shares), watch.rate_bytes_per_s(1));
  shares[1].weight_permille = 0;
  EXPECT_EQ(watch.SlowestBytesPerSecond(shares), watch.rate_bytes_per_s(0));
}

}  // namespace
}  // namespace r2cc::net
