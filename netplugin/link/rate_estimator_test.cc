#include "netplugin/link/rate_estimator.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::net {
namespace {

constexpr Nanos kRound = 50 * kNanosPerMs;
constexpr uint64_t kFull = 3'000'000;  // bytes in a round at full rate

// A round in which every link is busy all the time at `fractions` of the full rate. `others_limited`: so are those after the first at their
// limit.
bool Round(RateEstimator* rates, std::vector<double> fractions, bool others_limited = true, std::span<const LinkShare> shares = {}) {
  for (LinkId link = 0; link < fractions.size(); ++link)
    rates->Sample(link, static_cast<uint64_t>(fractions[link] * kFull), kRound, link == 0 || others_limited);
  const bool changed = rates->Judge(shares);
  rates->SharesChanged();
  return changed;
}

TEST(RateEstimator, AQuarterOfTheRateIsSlowAfterThreeRoundsAndHasThatShare) {
  RateEstimator rates(4);
  EXPECT_FALSE(Round(&rates, {1, 1, 0.25, 1})) << "the first does not count";
  EXPECT_FALSE(Round(&rates, {1, 1, 0.25, 1}));
  EXPECT_FALSE(Round(&rates, {1, 1, 0.25, 1}));
  EXPECT_TRUE(Round(&rates, {1, 1, 0.25, 1}));
  EXPECT_TRUE(rates.straggler(2));
  EXPECT_EQ(rates.SharePermille(2), 250);
  EXPECT_EQ(rates.SharePermille(1), 1000);
  EXPECT_FALSE(Round(&rates, {1, 1, 0.26, 1})) << "too small a change";
}

TEST(RateEstimator, ALinkWithLittleToDoIsNotSlow) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) {
    rates.Sample(0, kFull, kRound, true);
    // A tenth of the bytes, but in a tenth of the time.
    rates.Sample(1, kFull / 10, kRound / 10, true);
    EXPECT_FALSE(rates.Judge({}));
  }
}

TEST(RateEstimator, ALinkThatLimitsNobodyIsNotSlow) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) {
    rates.Sample(0, kFull, kRound, true);
    rates.Sample(1, kFull / 4, kRound, false);  // its few chunks wait for acknowledgements
    EXPECT_FALSE(rates.Judge({}));
  }
}

TEST(RateEstimator, ALinkThatBurstsMakesTheOthersNotSlow) {
  RateEstimator rates(4);
  for (int i = 0; i < 20; ++i) {
    for (LinkId link : {0, 2, 3}) rates.Sample(link, kFull, kRound, true);
    rates.Sample(1, kFull, kRound / 4, false);  // a quarter of the time, four times the rate
    EXPECT_FALSE(rates.Judge({}));
  }
}

TEST(RateEstimator, LinksThatBeginWithABurstMakeTheOthersNotSlow) {
  RateEstimator rates(4);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 1, 1, 1});
  for (LinkId link : {1, 2}) rates.Forget(link);
  for (int i = 0; i < 20; ++i) {
    const double burst = i == 0 ? 10 : 1;
    EXPECT_FALSE(Round(&rates, {1, burst, burst, 1})) << i;
  }
}

TEST(RateEstimator, NobodyIsComparedWithALinkThatBeganWithABurstAndHasNothingToDo) {
  RateEstimator rates(4);
  Round(&rates, {1, 1, 1, 3});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&rates, {1, 1, 1})) << i;
}

TEST(RateEstimator, NobodyIsComparedWithALinkThatIsGone) {
  RateEstimator rates(4);
  for (int i = 0; i < 2; ++i) Round(&rates, {1, 1, 1, 3});
  rates.Forget(3);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&rates, {1, 1, 1})) << i;
}

TEST(RateEstimator, APlaceThatJoinsOtherRailsIsNotJudgedAsBefore) {
  RateEstimator rates(2);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 0.2});
  ASSERT_TRUE(rates.straggler(1));
  rates.Clear(1);
  EXPECT_FALSE(rates.straggler(1));
  EXPECT_EQ(rates.rate_bytes_per_s(1), 0);
}

TEST(RateEstimator, TwoSlowLinksOfFourAreBothSlow) {
  RateEstimator rates(4);
  for (int i = 0; i < 5; ++i) Round(&rates, {0.3, 1, 0.25, 1});
  EXPECT_TRUE(rates.straggler(0));
  EXPECT_TRUE(rates.straggler(2));
  EXPECT_FALSE(rates.straggler(1));
}

TEST(RateEstimator, OneBadRoundIsNoVerdict) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&rates, {1, i % 4 == 0 ? 0.3 : 1}));
}

TEST(RateEstimator, ASoundLinkIsSoundAgain) {
  RateEstimator rates(2);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 0.2});
  ASSERT_TRUE(rates.straggler(1));
  int rounds = 0;
  while (rates.straggler(1) && rounds < 20) {
    Round(&rates, {1, 1});
    ++rounds;
  }
  EXPECT_FALSE(rates.straggler(1));
  EXPECT_GE(rounds, 3);
  EXPECT_EQ(rates.SharePermille(1), 1000);
}

// What links of these caps have carried in a round in which the first was at its limit, if the second can move so much.
std::vector<LinkShare> Carried(uint16_t cap_permille, double fraction) {
  const double second = std::min(cap_permille / 1000.0, fraction);
  return {{.usable = true, .weight_permille = 1000, .carried_bytes = kFull},
          {.usable = true, .weight_permille = cap_permille, .carried_bytes = static_cast<uint64_t>(second * kFull)}};
}

TEST(RateEstimator, ASoundLinkIsNotSlowForEverBecauseItsCeilingHoldsItBack) {
  for (const double moment : {0.1, 0.3, 0.5}) {
    RateEstimator rates(2);
    for (int i = 0; i < 20; ++i) Round(&rates, {1, moment});
    ASSERT_TRUE(rates.straggler(1)) << moment;
    int rounds = 0;
    for (; rates.straggler(1) && rounds < 100; ++rounds) {
      const uint16_t cap_permille = rates.CapPermille(1);
      // It seems to move even less than it is allowed, the less the fewer chunks it has: the account errs.
      const double allowed = cap_permille / 1000.0;
      Round(&rates, {1, allowed * (0.6 + 0.4 * allowed)}, false, Carried(cap_permille, 1));
    }
    EXPECT_LE(rounds, 20) << moment;
  }
}

// It waits for chunks most of the time: an estimate of as much busy time as usual would take a second.
TEST(RateEstimator, ASoundLinkIsSoundAgainAlsoWhereItsCeilingLeavesItIdle) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25});
  ASSERT_TRUE(rates.straggler(1));
  int rounds = 0;
  for (; rates.straggler(1) && rounds < 100; ++rounds) {
    const uint16_t cap_permille = rates.CapPermille(1);
    rates.Sample(0, kFull, kRound, true);
    rates.Sample(1, kFull * cap_permille / 1000, kRound / 50, false);
    rates.Judge(Carried(cap_permille, 1));
    rates.SharesChanged();
    EXPECT_FALSE(rates.straggler(0)) << "bursts of an idle link say nothing of the other";
  }
  EXPECT_LE(rounds, 20);
}

TEST(RateEstimator, ASlowLinkWithLittleToDoStaysSlow) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25});
  for (int i = 0; i < 100; ++i) {
    rates.Sample(0, kFull, kRound, true);
    rates.Sample(1, kFull / 40, kRound / 10, false);
    rates.Judge({});
  }
  EXPECT_EQ(rates.SharePermille(1), 250);
}

// All messages are small, and go by links of full weight.
TEST(RateEstimator, ASlowLinkThatCarriesNothingIsTriedAgain) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25});
  ASSERT_TRUE(rates.straggler(1));
  int rounds = 0;
  for (; rates.straggler(1) && rounds < 1000; ++rounds) {
    rates.Sample(0, kFull, kRound, true);
    rates.Judge(Carried(rates.CapPermille(1), 0));
    rates.SharesChanged();
  }
  EXPECT_EQ(rounds, 100) << "5 s";
}

TEST(RateEstimator, NobodyIsComparedWithWhatALinkMovedUnderItsCeiling) {
  RateEstimator rates(4);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25, 1, 1});
  while (rates.straggler(1)) {
    for (const LinkId link : {0, 2, 3}) rates.Sample(link, kFull, kRound, true);
    rates.Sample(1, 2 * kFull, kRound / 4, false);
    rates.Judge({});
  }
  for (int i = 0; i < 20; ++i) {
    Round(&rates, {1, 1, 1, 1});
    for (const LinkId link : {0, 1, 2, 3}) EXPECT_FALSE(rates.straggler(link)) << "round " << i << ", link " << link;
  }
}

TEST(RateEstimator, WhatWasCarriedBeforeIsNotOfThisRound) {
  RateEstimator rates(2);
  std::vector<LinkShare> shares(3, LinkShare{.usable = true, .weight_permille = 1000});
  shares[2].usable = false;
  const auto round = [&](double fraction) {
    shares[0].carried_bytes += kFull;
    shares[1].carried_bytes += static_cast<uint64_t>(fraction * kFull);
    for (LinkId link = 0; link < 2; ++link) rates.Sample(link, static_cast<uint64_t>((link == 0 ? 1 : fraction) * kFull), kRound, true);
    rates.Judge(shares);
  };
  for (int i = 0; i < 100; ++i) round(1);
  for (int i = 0; i < 6; ++i) round(0.25);
  EXPECT_TRUE(rates.straggler(1));
}

TEST(RateEstimator, WaitsUntilSomethingWasCarried) {
  constexpr uint64_t kChunk = 128 * 1024;
  RateEstimator rates(2);
  std::vector<LinkShare> shares(3, LinkShare{.usable = true, .weight_permille = 1000});
  shares[2].usable = false;
  for (int i = 0; i < 20; ++i) {
    shares[0].carried_bytes += kChunk;
    shares[1].carried_bytes += i % 2 * kChunk;
    // At their limits both, and the second seems the slower one for what it carries.
    for (LinkId link = 0; link < 2; ++link) rates.Sample(link, kFull / (link == 0 ? 1 : 3), kRound, true);
    rates.Judge(shares);
    EXPECT_EQ(rates.straggler(1), i >= 11) << i << ": three rounds of four chunks";
  }
  EXPECT_EQ(rates.SharePermille(1), 333);
}

TEST(RateEstimator, ALinkOfLittleWeightIsNotSlowForMovingNoMore) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) {
    Round(&rates, {1, 0.3}, false, Carried(300, 1));
    EXPECT_FALSE(rates.straggler(1));
  }
}

TEST(RateEstimator, ASlowLinkStaysAtWhatItMoves) {
  for (const double fraction : {0.05, 0.25, 0.55, 0.75}) {
    RateEstimator rates(2);
    for (int i = 0; i < 20; ++i) Round(&rates, {1, std::min(0.3, fraction)});
    for (int i = 0; i < 100; ++i) Round(&rates, {1, fraction}, true, Carried(rates.CapPermille(1), fraction));
    EXPECT_TRUE(rates.straggler(1));
    EXPECT_NEAR(rates.SharePermille(1), fraction * 1000, 50);
    EXPECT_EQ(rates.CapPermille(1), rates.SharePermille(1) + 100);
    EXPECT_EQ(rates.CapPermille(0), 1000);
  }
}

TEST(RateEstimator, AFewBytesSayNothing) {
  RateEstimator rates(2);
  for (int i = 0; i < 100; ++i) {
    rates.Sample(0, 1000, kNanosPerMs / 10, true);
    rates.Sample(1, 10, kNanosPerMs / 10, true);
    EXPECT_FALSE(rates.Judge({}));
  }
}

TEST(RateEstimator, ANewIncarnationIsMeasuredAnewAndJudgedAsBefore) {
  RateEstimator rates(2);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 0.2});
  rates.Forget(1);
  EXPECT_TRUE(rates.straggler(1));
  EXPECT_EQ(rates.SharePermille(1), 200);
}

TEST(RateEstimator, TheSlowestIsOneThatMayCarryChunksAndIsKnown) {
  RateEstimator rates(4);
  std::vector<LinkShare> shares(4, LinkShare{.usable = true, .weight_permille = 1000});
  EXPECT_EQ(rates.SlowestBytesPerSecond(shares), 0);
  for (LinkId link = 0; link < 3; ++link) rates.Sample(link, kFull / (link + 1), kRound, true);
  const double rate = rates.rate_bytes_per_s(2);
  EXPECT_GT(rate, 0);
  EXPECT_EQ(rates.SlowestBytesPerSecond(shares), rate) << "of the last one nothing is known";
  shares[2].usable = false;
  EXPECT_EQ(rates.SlowestBytesPerSecond(shares), rates.rate_bytes_per_s(1));
  shares[1].weight_permille = 0;
  EXPECT_EQ(rates.SlowestBytesPerSecond(shares), rates.rate_bytes_per_s(0));
}

}  // namespace
}  // namespace r2cc::net
