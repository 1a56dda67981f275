#include "base/core/retry.h"

#include <gtest/gtest.h>

#include <set>

namespace r2cc {
namespace {

constexpr Nanos kBackOff = 50 * kNanosPerMs;

TEST(WithJitter, IsNeverLessThanTheBackOffNorMuchMore) {
  for (const Nanos back_off : {Nanos{0}, Nanos{1}, kBackOff, 2 * kNanosPerSecond})
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      const Nanos wait = WithJitter(back_off, seed, 1, 1);
      EXPECT_GE(wait, back_off);
      EXPECT_LE(wait, back_off + back_off / 4);
      EXPECT_EQ(wait, WithJitter(back_off, seed, 1, 1));
    }
}

// Few of the connections that failed in one moment come again in the same quarter of a millisecond.
TEST(WithJitter, SpreadsThoseThatFailedTogether) {
  constexpr uint32_t kSeeds = 10, kNames = 8;
  constexpr Nanos kMoment = kNanosPerMs / 4;
  for (uint32_t tries = 1; tries < 5; ++tries) {
    std::multiset<Nanos> moments;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed)
      for (uint32_t name = 0; name < kNames; ++name) moments.insert(WithJitter(kBackOff, seed, name, tries) / kMoment);
    // 50 moments for 80 tries.
    for (const Nanos moment : moments) EXPECT_LE(moments.count(moment), 8u);
  }
}

TEST(Retry, IsDueAtFirstAndThenAfterWaitsThatDouble) {
  Retry retry(100, 750);
  EXPECT_TRUE(retry.IsDue(0));
  EXPECT_EQ(retry.back_off(), 0);
  Nanos now = 1000;
  for (const Nanos wait : {100, 200, 400, 750, 750}) {
    retry.Began();
    retry.Failed(now);
    EXPECT_EQ(retry.wait(), wait);
    EXPECT_EQ(retry.due(), now + wait);
    EXPECT_FALSE(retry.IsDue(now + wait - 1));
    EXPECT_TRUE(retry.IsDue(now += wait));
  }
}

TEST(Retry, BeginsAgainWithTheShortestWaitAfterASuccess) {
  Retry retry(100, 750);
  retry.Failed(0);
  retry.Failed(0);
  retry.Worked();
  EXPECT_FALSE(retry.IsDue(0)) << "what was to wait goes on waiting";
  retry.Failed(0);
  EXPECT_EQ(retry.wait(), 100);
  retry.Restart();
  EXPECT_TRUE(retry.IsDue(0));
}

TEST(Retry, HasOtherJitterForEachTryAndEachName) {
  std::set<Nanos> waits;
  for (uint32_t name = 0; name < 4; ++name) {
    Retry retry(kBackOff, kBackOff, Retry::Jitter{7, name});
    for (int tries = 0; tries < 4; ++tries) {
      retry.Began();
      retry.Failed(0);
      EXPECT_EQ(retry.back_off(), kBackOff);
      EXPECT_GE(retry.wait(), kBackOff);
      EXPECT_LE(retry.wait(), kBackOff + kBackOff / 4);
      waits.insert(retry.wait());
    }
  }
  EXPECT_EQ(waits.size(), 16u);
}

}  // namespace
}  // namespace r2cc
