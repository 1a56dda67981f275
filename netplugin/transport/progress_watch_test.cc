#include "netplugin/transport/progress_watch.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr Nanos kS = kNanosPerSecond;

class ProgressWatchTest : public testing::Test {
 protected:
  // A look a second later.
  ProgressWatch::Verdict Look(uint64_t outstanding, uint64_t done, uint64_t bytes) {
    now_ += kS;
    return watch_.Look({outstanding, done, bytes}, now_);
  }
  Nanos now_ = 100 * kS;
  ProgressWatch watch_;
};

TEST_F(ProgressWatchTest, AProcessWithoutRequestsNeverWaits) {
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(Look(0, 7, 100).report);
}

TEST_F(ProgressWatchTest, AWaitIsReportedEachSecondAndItsEndOnce) {
  EXPECT_FALSE(Look(3, 7, 100).report);
  EXPECT_FALSE(Look(3, 7, 100).report);
  for (int i = 2; i < 20; ++i) {
    const ProgressWatch::Verdict verdict = Look(3, 7, 100);
    EXPECT_TRUE(verdict.report);
    EXPECT_EQ(verdict.waited, i * kS);
  }
  const ProgressWatch::Verdict over = Look(3, 8, 100);
  EXPECT_TRUE(over.report);
  EXPECT_EQ(over.waited, 0);
  EXPECT_FALSE(Look(3, 8, 100).report);
}

TEST_F(ProgressWatchTest, AMessageThatMovesSlowlyIsProgress) {
  for (uint64_t bytes = 0; bytes < 60; ++bytes) EXPECT_FALSE(Look(1, 7, bytes).report);
}

TEST_F(ProgressWatchTest, APostAfterNothingWasOutstandingBeginsAWait) {
  for (int i = 0; i < 60; ++i) Look(0, 7, 100);
  EXPECT_FALSE(Look(1, 7, 100).report);
  EXPECT_FALSE(Look(1, 7, 100).report);
  EXPECT_EQ(Look(1, 7, 100).waited, 2 * kS);
}

TEST_F(ProgressWatchTest, TimeInWhichTheProcessWasStoppedIsNotCounted) {
  Look(1, 7, 100);
  now_ += 600 * kS;
  EXPECT_FALSE(Look(1, 7, 100).report);
  EXPECT_FALSE(Look(1, 7, 100).report);
  EXPECT_EQ(Look(1, 7, 100).waited, 2 * kS);
}

}  // namespace
}  // namespace r2cc::net
