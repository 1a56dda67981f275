#include "daemon/jobs/hang_watch.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

constexpr Nanos kS = kNanosPerSecond;
constexpr JobId kJob = 7;

class HangWatchTest : public testing::Test {
 protected:
  HangWatchTest() { watch_.Attached(kJob, now_); }

  // Half a second in which no process sends anything.
  void Pass() {
    now_ += kS / 2;
    for (const HangWatch::Turn& turn : watch_.Look(now_)) turns_.push_back(turn);
  }
  // A second at whose end the plugin reports.
  void Report(bool changed, Nanos waits_since = 0) {
    Pass();
    Pass();
    watch_.Totals(kJob, changed, now_);
    watch_.Waits(kJob, waits_since);
  }
  Nanos now_ = 1000 * kS;
  HangWatch watch_;
  std::vector<HangWatch::Turn> turns_;
};

TEST_F(HangWatchTest, NobodyHangsThatMovesIsIdleOrWaitsForLess) {
  for (int i = 0; i < 1800; ++i) Report(true);
  for (int i = 0; i < 1800; ++i) Report(false);
  for (int i = 0; i < 1800; ++i) Report(i % 8 == 0, i % 8 < 2 ? 0 : now_ - (i % 8) * kS);
  EXPECT_TRUE(turns_.empty());
}

TEST_F(HangWatchTest, AWaitIsNamedAfterTenSecondsOnceAndItsEnd) {
  Report(true);
  const Nanos since = now_;
  while (turns_.empty() && now_ < since + 60 * kS) Report(false, since);
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_TRUE(turns_[0].hangs);
  EXPECT_FALSE(turns_[0].silent);
  EXPECT_EQ(turns_[0].since, since);
  EXPECT_LE(now_ - since, 11 * kS);
  EXPECT_EQ(watch_.Since(kJob), since);
  for (int i = 0; i < 100; ++i) Report(false, since);
  EXPECT_EQ(turns_.size(), 1u);
  Report(true);
  Pass();
  ASSERT_EQ(turns_.size(), 2u);
  EXPECT_FALSE(turns_[1].hangs);
  EXPECT_EQ(turns_[1].since, since);
  EXPECT_EQ(watch_.Since(kJob), 0);
}

TEST_F(HangWatchTest, AProcessThatIsStoppedWhileItMovesIsNamed) {
  Report(true);
  Report(true);
  const Nanos stopped = now_;
  while (turns_.empty() && now_ < stopped + 60 * kS) Pass();
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_TRUE(turns_[0].silent);
  EXPECT_EQ(turns_[0].since, stopped);
  EXPECT_LE(now_ - stopped, 11 * kS);
  Report(false);
  Pass();
  EXPECT_EQ(turns_.size(), 2u);
}

TEST_F(HangWatchTest, AProcessThatIsStoppedWithNothingToMoveIsNot) {
  for (int i = 0; i < 10; ++i) Report(i < 2);
  for (int i = 0; i < 1000; ++i) Pass();
  EXPECT_TRUE(turns_.empty());
}

TEST_F(HangWatchTest, BytesBeforeThisDaemonAreNoMovement) {
  Report(true);
  for (int i = 0; i < 1000; ++i) Pass();
  EXPECT_TRUE(turns_.empty());
}

TEST_F(HangWatchTest, ADaemonThatWasStoppedHoldsTheTimeAgainstNobody) {
  for (int i = 0; i < 3; ++i) Report(true);
  now_ += 3600 * kS;
  Pass();
  for (int i = 0; i < 100; ++i) Report(true);
  EXPECT_TRUE(turns_.empty());
}

TEST_F(HangWatchTest, AnEndedProcessIsForgotten) {
  Report(true);
  Report(true);
  watch_.Gone(kJob);
  watch_.Totals(kJob, true, now_);
  for (int i = 0; i < 100; ++i) Pass();
  EXPECT_TRUE(turns_.empty());
  EXPECT_EQ(watch_.Since(kJob), 0);
}

}  // namespace
}  // namespace r2cc::daemon
