#include "health/io/source_rates.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc::health {
namespace {

using Answer = SourceRates::Answer;

std::string Source(int number) { return "10.0.0." + std::to_string(number); }

TEST(SourceRates, OneBeyondItsRateIsKeptOutAndNobodyElse) {
  SourceRates rates;
  Nanos now = kNanosPerSecond;
  for (int i = 0; i < kSourceDatagramsBurst; ++i) ASSERT_EQ(rates.Count(Source(1), now), Answer::kTake) << i;
  EXPECT_EQ(rates.Count(Source(1), now), Answer::kNewlyBlocked);
  EXPECT_EQ(rates.Blocked(), std::vector<std::string>{Source(1)});
  now += kBlockDuration - 1;
  EXPECT_FALSE(rates.Release(now));
  EXPECT_EQ(rates.Count(Source(1), now), Answer::kDrop) << "independent of what came meanwhile";
  EXPECT_EQ(rates.Count(Source(2), now), Answer::kTake);
  EXPECT_EQ(rates.NextRelease(), now + 1);
  EXPECT_TRUE(rates.Release(now + 1));
  EXPECT_TRUE(rates.Blocked().empty());
  EXPECT_EQ(rates.NextRelease(), 0);
  EXPECT_EQ(rates.Count(Source(1), now + 1), Answer::kTake);
}

// The most that a daemon sends: 200 pings a second, and two answers to each of 200.
TEST(SourceRates, ADaemonIsNeverKeptOut) {
  SourceRates rates;
  for (int i = 0; i < 6000; ++i) ASSERT_EQ(rates.Count(Source(1), kNanosPerSecond + i * kNanosPerSecond / 600), Answer::kTake) << i;
}

TEST(SourceRates, SendersAreBoundedAndThoseThatStoppedMakeRoom) {
  SourceRates rates;
  const Nanos now = kNanosPerSecond;
  for (int i = 0; i < 2 * static_cast<int>(kSourcesMax); ++i) ASSERT_EQ(rates.Count(Source(i), now), Answer::kTake);
  EXPECT_EQ(rates.sources(), kSourcesMax);
  const int later = 2 * kSourcesMax;
  EXPECT_EQ(rates.Count(Source(later), now + kNanosPerSecond), Answer::kTake);
  EXPECT_EQ(rates.sources(), 1u);
}

TEST(SourceRates, AsManyAreKeptOutAtOnceAndTheOthersAreDropped) {
  SourceRates rates;
  const Nanos now = kNanosPerSecond;
  const int most = static_cast<int>(kBlockedSourcesMax);
  for (int source = 0; source <= most; ++source)
    for (int i = 0; i < kSourceDatagramsBurst; ++i) ASSERT_EQ(rates.Count(Source(source), now), Answer::kTake);
  for (int source = 0; source < most; ++source) ASSERT_EQ(rates.Count(Source(source), now), Answer::kNewlyBlocked);
  EXPECT_EQ(rates.Count(Source(most), now), Answer::kDrop);
  EXPECT_EQ(rates.Blocked().size(), kBlockedSourcesMax);
}

}  // namespace
}  // namespace r2cc::health
