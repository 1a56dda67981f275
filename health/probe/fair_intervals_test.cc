#include "health/probe/fair_intervals.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

constexpr Nanos kMin = 100 * kNanosPerMs;

Nanos IntervalOf(uint32_t user, const std::map<uint32_t, size_t>& pairs) { return FairIntervals(pairs, kMin, 140).at(user); }

TEST(FairIntervals, OneUserHasTheBudget) {
  EXPECT_EQ(IntervalOf(1, {{1, 8}}), kMin);
  EXPECT_EQ(IntervalOf(1, {{1, 14}}), kMin);
  EXPECT_EQ(IntervalOf(1, {{1, 140}}), kNanosPerSecond);
  EXPECT_TRUE(FairIntervals({}, kMin, 140).empty());
  EXPECT_TRUE(FairIntervals({{1, 0}}, kMin, 140).empty());
}

TEST(FairIntervals, SmallDemandsAreMetHoweverMuchOthersWant) {
  for (const size_t crowd : {8, 100, 1000, 100'000}) EXPECT_EQ(IntervalOf(1, {{1, 4}, {2, crowd}}), kMin) << crowd;
  EXPECT_EQ(IntervalOf(2, {{1, 4}, {2, 1000}}), 10 * kNanosPerSecond) << "the rest of the budget";
  // Eight rails with one node want 80 a second, half of the budget is 70.
  EXPECT_LT(IntervalOf(1, {{1, 8}, {2, 1000}}), kMin * 6 / 5);
  EXPECT_EQ(IntervalOf(1, {{1, 70}, {2, 70}}), kNanosPerSecond);
}

}  // namespace
}  // namespace r2cc::health
