#include "netplugin/link/oob_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::net {
namespace {

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kSilence = 250 * kMs;

class OobWatchTest : public testing::Test {
 protected:
  // How long until it is tried.
  Nanos Retry() {
    for (const Nanos since = now_; now_ - since < 10 * kNanosPerSecond; now_ += kMs)
      if (watch_.Try(now_)) return now_ - since;
    return -1;
  }

  OobWatch watch_{7};
  Nanos now_ = 100 * kNanosPerSecond;
};

TEST_F(OobWatchTest, IsTriedAtOnceAndAfterLongerAndLongerWaits) {
  EXPECT_EQ(Retry(), 0);
  EXPECT_EQ(Retry(), -1) << "while the first is under way";
  Nanos last = 0;
  for (int i = 0; i < 8; ++i) {
    watch_.Down(ProbeResult::kSilent, now_);
    const Nanos waited = Retry();
    EXPECT_GE(waited, std::min<Nanos>(last, 2000 * kMs)) << i;
    last = waited;
  }
  EXPECT_LE(last, 2500 * kMs);
  watch_.Up();
  watch_.Down(ProbeResult::kSilent, now_);
  EXPECT_EQ(Retry(), 0) << "what was up may have been reset";
}

TEST_F(OobWatchTest, AHalfOpenConnectionIsKeptAndIsNoSilence) {
  Retry();
  watch_.Down(ProbeResult::kSilent, now_);
  Retry();
  now_ += kSilence;
  EXPECT_TRUE(watch_.Silent(kSilence, now_));
  watch_.Ungreeted(now_);
  EXPECT_FALSE(watch_.Silent(kSilence, now_));
  EXPECT_TRUE(watch_.ungreeted());
  EXPECT_FALSE(watch_.Ungreeted(kSilence, now_ + kSilence - 1));
  EXPECT_TRUE(watch_.Ungreeted(kSilence, now_ + kSilence));
  EXPECT_EQ(Retry(), -1) << "it is kept";
  watch_.Up();
  EXPECT_TRUE(watch_.up());
  EXPECT_FALSE(watch_.ungreeted());
}

TEST_F(OobWatchTest, SilenceBeginsWhenTheKernelAnswersNoMore) {
  Retry();
  watch_.Ungreeted(now_);
  watch_.Down(ProbeResult::kSilent, now_);
  EXPECT_FALSE(watch_.ungreeted());
  EXPECT_FALSE(watch_.Silent(kSilence, now_ + kSilence - 1));
  Retry();
  watch_.Down(ProbeResult::kSilent, now_ + 100 * kMs);
  EXPECT_TRUE(watch_.Silent(kSilence, now_ + kSilence));
}

TEST_F(OobWatchTest, RefusedUntilSomebodyIsThere) {
  Retry();
  watch_.Down(ProbeResult::kRefused, now_);
  EXPECT_TRUE(watch_.refused());
  EXPECT_FALSE(watch_.Silent(kSilence, now_ + kSilence)) << "its kernel has answered";
  Retry();
  EXPECT_TRUE(watch_.refused()) << "nobody has said otherwise yet";
  watch_.Ungreeted(now_);
  EXPECT_FALSE(watch_.refused());
}

}  // namespace
}  // namespace r2cc::net
