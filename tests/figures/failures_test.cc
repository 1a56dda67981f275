#include "tests/figures/failures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace r2cc::figures {
namespace {

TEST(Failures, TheGivenNumberOfDifferentNicsIsLost) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Lost lost = LoseNics(10, 64, 8, seed);
    EXPECT_EQ(lost.size(), 64u);
    EXPECT_EQ(std::accumulate(lost.begin(), lost.end(), 0), 10);
    EXPECT_LT(*std::max_element(lost.begin(), lost.end()), 8);
  }
  // All that may be lost: one rail of each server is left.
  EXPECT_EQ(LoseNics(6, 3, 3, 1), (Lost{2, 2, 2}));
}

TEST(Failures, ASeedIsOneDraw) {
  EXPECT_EQ(LoseNics(10, 64, 8, 7), LoseNics(10, 64, 8, 7));
  EXPECT_NE(LoseNics(10, 64, 8, 7), LoseNics(10, 64, 8, 8));
}

TEST(Failures, EveryServerIsHitAsOften) {
  Lost sum(8, 0);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Lost lost = LoseNics(2, 8, 4, seed);
    for (int i = 0; i < 8; ++i) sum[i] += lost[i];
  }
  for (const int hits : sum) EXPECT_NEAR(hits, 1000, 100);
}

TEST(Failures, TheRateIsThatOfTheNics) {
  double failures = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto drawn = FailuresOver(1000, 1e-4, 16, 8, seed);
    failures += static_cast<double>(drawn.size());
    EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end(), [](const Failure& a, const Failure& b) { return a.at_s < b.at_s; }));
  }
  EXPECT_NEAR(failures / 200, 1000 * 1e-4 * 16 * 8, 1);
}

// Twice as slow with one NIC lost, three times with two.
double Slowdown(const Lost& lost) { return 1 + std::accumulate(lost.begin(), lost.end(), 0); }

TEST(Failures, NothingIsLostWithoutFailures) { EXPECT_DOUBLE_EQ(LostSeconds({}, 100, 10, 4, 5, Slowdown), 0); }

TEST(Failures, EachSliceOfTimeCountsWithItsNics) {
  // 10..15 one lost: half of 5 s; 15..20 two: two thirds of 5 s; 20..25 one; 3 s for each failure.
  const std::vector<Failure> failures{{.at_s = 10, .server = 0, .rail = 0}, {.at_s = 15, .server = 1, .rail = 0}};
  EXPECT_NEAR(LostSeconds(failures, 100, 10, 4, 3, Slowdown), 2.5 + 10.0 / 3 + 2.5 + 6, 1e-12);
}

TEST(Failures, ASecondFailureOfANicLengthensItsRepair) {
  const std::vector<Failure> failures{{.at_s = 10, .server = 0, .rail = 0}, {.at_s = 15, .server = 0, .rail = 0}};
  EXPECT_NEAR(LostSeconds(failures, 100, 10, 4, 0, Slowdown), 15.0 / 2, 1e-12);
}

TEST(Failures, AnUnrepairedFailureCountsToTheEnd) {
  EXPECT_NEAR(LostSeconds({{.at_s = 90, .server = 0, .rail = 0}}, 100, 1000, 4, 0, Slowdown), 5, 1e-12);
}

}  // namespace
}  // namespace r2cc::figures
