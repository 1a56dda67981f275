#include "netplugin/link/retry_wait.h"

#include <gtest/gtest.h>

#include <set>

namespace r2cc::net {
namespace {

constexpr Nanos kBackOff = 50 * kNanosPerMs;

TEST(RetryWait, IsNeverLessThanTheBackOffNorMuchMore) {
  for (const Nanos back_off : {Nanos{0}, Nanos{1}, kBackOff, 2 * kNanosPerSecond})
    for (uint64_t session = 0; session < 1000; ++session) {
      const Nanos wait = RetryWait(back_off, session, 1, 1);
      EXPECT_GE(wait, back_off);
      EXPECT_LE(wait, back_off + back_off / 4);
      EXPECT_EQ(wait, RetryWait(back_off, session, 1, 1));
    }
}

// Of connections that failed in one moment, few come again in the same quarter of a millisecond.
TEST(RetryWait, SpreadsThoseWhoFailedTogether) {
  constexpr uint32_t kSessions = 10, kLinks = 8;
  constexpr Nanos kMoment = kNanosPerMs / 4;
  for (uint32_t tries = 1; tries < 5; ++tries) {
    std::multiset<Nanos> moments;
    for (uint64_t session = 1; session <= kSessions; ++session)
      for (uint32_t link = 0; link < kLinks; ++link) moments.insert(RetryWait(kBackOff, session, link, tries) / kMoment);
    // 50 moments for 80 tries.
    for (const Nanos moment : moments) EXPECT_LE(moments.count(moment), 8u);
  }
}

}  // namespace
}  // namespace r2cc::net
