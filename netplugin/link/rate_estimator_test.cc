#include "netplugin/link/rate_estimator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr Nanos kRound = 50 * kNanosPerMs;
constexpr uint64_t kFull = 3'000'000;  // bytes in a round at full rate

// A round in which every link is busy all the time at `fractions` of the full rate. `others_limited`: so are those after the first at their
// limit.
bool Round(RateEstimator* rates, std::vector<double> fractions, bool others_limited = true) {
  for (LinkId link = 0; link < fractions.size(); ++link)
    rates->Sample(link, static_cast<uint64_t>(fractions[link] * kFull), kRound, link == 0 || others_limited);
  return rates->Judge();
}

TEST(RateEstimator, AQuarterOfTheRateIsSlowAfterThreeRoundsAndHasThatShare) {
  RateEstimator rates(4);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Round(&rates, {1, 1, 0.25, 1})) << "the first two do not count";
  EXPECT_FALSE(Round(&rates, {1, 1, 0.25, 1}));
  EXPECT_FALSE(Round(&rates, {1, 1, 0.25, 1}));
  EXPECT_TRUE(Round(&rates, {1, 1, 0.25, 1}));
  EXPECT_TRUE(rates.slow(2));
  EXPECT_EQ(rates.SharePermille(2), 250);
  EXPECT_EQ(rates.SharePermille(1), 1000);
  EXPECT_FALSE(Round(&rates, {1, 1, 0.35, 1})) << "no other verdict";
  EXPECT_EQ(rates.SharePermille(2), 300) << "the average of both";
}

TEST(RateEstimator, ALinkWithLittleToDoIsNotSlow) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) {
    rates.Sample(0, kFull, kRound, true);
    // A tenth of the bytes, but in a tenth of the time.
    rates.Sample(1, kFull / 10, kRound / 10, true);
    EXPECT_FALSE(rates.Judge());
  }
}

TEST(RateEstimator, ALinkThatLimitsNobodyIsNotSlow) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) {
    rates.Sample(0, kFull, kRound, true);
    rates.Sample(1, kFull / 4, kRound, false);  // its few chunks wait for acknowledgements
    EXPECT_FALSE(rates.Judge());
  }
}

TEST(RateEstimator, ALinkThatBurstsMakesTheOthersNotSlow) {
  RateEstimator rates(4);
  for (int i = 0; i < 20; ++i) {
    for (LinkId link : {0, 2, 3}) rates.Sample(link, kFull, kRound, true);
    rates.Sample(1, kFull, kRound / 4, false);  // a quarter of the time, four times the rate
    EXPECT_FALSE(rates.Judge());
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
  for (int i = 0; i < 4; ++i) Round(&rates, {1, 1, 1, 3});
  rates.Forget(3);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&rates, {1, 1, 1})) << i;
}

TEST(RateEstimator, APlaceThatJoinsOtherRailsIsNotJudgedAsBefore) {
  RateEstimator rates(2);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 0.2});
  ASSERT_TRUE(rates.slow(1));
  rates.Clear(1);
  EXPECT_FALSE(rates.slow(1));
  EXPECT_EQ(rates.rate_bytes_per_s(1), 0);
}

TEST(RateEstimator, TwoSlowLinksOfFourAreBothSlow) {
  RateEstimator rates(4);
  for (int i = 0; i < 5; ++i) Round(&rates, {0.3, 1, 0.25, 1});
  EXPECT_TRUE(rates.slow(0));
  EXPECT_TRUE(rates.slow(2));
  EXPECT_FALSE(rates.slow(1));
}

TEST(RateEstimator, OneBadRoundIsNoVerdict) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Round(&rates, {1, i % 4 == 0 ? 0.3 : 1}));
}

TEST(RateEstimator, ASoundLinkIsSoundAgain) {
  RateEstimator rates(2);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 0.2});
  ASSERT_TRUE(rates.slow(1));
  int rounds = 0;
  while (rates.slow(1) && rounds < 20) {
    Round(&rates, {1, 1});
    ++rounds;
  }
  EXPECT_FALSE(rates.slow(1));
  EXPECT_GE(rounds, 3);
  EXPECT_EQ(rates.SharePermille(1), 1000);
}

// With few chunks it seems to move less than it can, but each time it may have as many more as it has shown to move.
TEST(RateEstimator, ASoundLinkIsSoundAgainAlsoWhereItIsNeverAtItsLimit) {
  for (const double moment : {0.1, 0.3, 0.5}) {
    RateEstimator rates(2);
    for (int i = 0; i < 20; ++i) Round(&rates, {1, moment});
    ASSERT_TRUE(rates.slow(1)) << moment;
    int rounds = 0;
    for (; rates.slow(1) && rounds < 100; ++rounds) {
      const double share = rates.SharePermille(1) / 1000.0;
      Round(&rates, {1, std::min(1.0, 0.6 + 0.4 * share)}, false);
    }
    EXPECT_LE(rounds, 20) << moment;
  }
}

TEST(RateEstimator, ASlowLinkWithLittleToDoMovesNoLessThanItDid) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25});
  for (int i = 0; i < 100; ++i) Round(&rates, {1, 0.1}, false);
  EXPECT_TRUE(rates.slow(1));
  EXPECT_EQ(rates.SharePermille(1), 250);
}

// All messages are small, and go by links of full weight.
TEST(RateEstimator, ASlowLinkThatCarriesNothingIsTriedAgain) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25});
  ASSERT_TRUE(rates.slow(1));
  int rounds = 0;
  for (; rates.slow(1) && rounds < 1000; ++rounds) {
    rates.Sample(0, kFull, kRound, true);
    rates.Judge();
  }
  EXPECT_EQ(rounds, tuning::kUnusedRoundsMost);
  EXPECT_EQ(rates.rate_bytes_per_s(1), 0) << "nothing is known of it";
}

TEST(RateEstimator, ASlowLinkStaysSlowWhileNobodyMovesAnything) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25});
  for (int i = 0; i < 1000; ++i) rates.Judge();
  EXPECT_TRUE(rates.slow(1));
}

TEST(RateEstimator, NobodyIsComparedWithTheBurstsOfASlowLinkThatIsSoundAgain) {
  RateEstimator rates(4);
  for (int i = 0; i < 20; ++i) Round(&rates, {1, 0.25, 1, 1});
  while (rates.slow(1)) {
    for (const LinkId link : {0, 2, 3}) rates.Sample(link, kFull, kRound, true);
    rates.Sample(1, 2 * kFull, kRound / 4, false);
    rates.Judge();
  }
  for (int i = 0; i < 20; ++i) {
    Round(&rates, {1, 1, 1, 1});
    for (const LinkId link : {0, 1, 2, 3}) EXPECT_FALSE(rates.slow(link)) << "round " << i << ", link " << link;
  }
}

TEST(RateEstimator, ALinkOfLittleWeightIsNotSlowForMovingNoMore) {
  RateEstimator rates(2);
  for (int i = 0; i < 20; ++i) {
    Round(&rates, {1, 0.3}, false);
    EXPECT_FALSE(rates.slow(1));
  }
}

TEST(RateEstimator, ASlowLinkStaysAtWhatItMoves) {
  for (const double fraction : {0.05, 0.25, 0.55, 0.75}) {
    RateEstimator rates(2);
    for (int i = 0; i < 20; ++i) Round(&rates, {1, std::min(0.3, fraction)});
    for (int i = 0; i < 100; ++i) Round(&rates, {1, fraction});
    EXPECT_TRUE(rates.slow(1));
    EXPECT_NEAR(rates.SharePermille(1), fraction * 1000, 1);
    EXPECT_EQ(rates.SharePermille(0), 1000);
  }
}

TEST(RateEstimator, AFewBytesShowNoRate) {
  RateEstimator rates(2);
  for (int i = 0; i < 100; ++i) {
    rates.Sample(0, 1000, kNanosPerMs / 10, true);
    rates.Sample(1, 10, kNanosPerMs / 10, true);
    EXPECT_FALSE(rates.Judge());
  }
}

TEST(RateEstimator, ANewIncarnationIsMeasuredAgainAndJudgedAsBefore) {
  RateEstimator rates(2);
  for (int i = 0; i < 5; ++i) Round(&rates, {1, 0.2});
  rates.Forget(1);
  EXPECT_TRUE(rates.slow(1));
  EXPECT_EQ(rates.SharePermille(1), 200);
}

}  // namespace
}  // namespace r2cc::net
