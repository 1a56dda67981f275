#include "health/probe/large_judge.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kPatience = 30 * kMs;

// One pair: a small and a large ping leave together, and each is answered in a millisecond or not at all.
class LargeJudgeTest : public testing::Test {
 protected:
  LargeJudgeTest() { judge_.SetFull(9000); }

  void Step(bool small, size_t passes, Nanos wait = 20 * kMs) {
    const size_t size = judge_.NextSize();
    judge_.Sent(++sequence_, size, now_);
    sizes_ += std::to_string(size) + " ";
    if (small) small_answered_ = now_;
    if (size <= passes) judge_.Answered(sequence_, now_ + kMs);
    now_ += wait;
    judge_.Judge(now_, kPatience, small_answered_);
  }
  void Steps(int count, bool small, size_t passes) {
    for (int i = 0; i < count; ++i) Step(small, passes);
  }

  LargeJudge judge_{LargePolicy()};
  Nanos now_ = 100 * kNanosPerSecond;
  Nanos small_answered_ = 0;
  uint64_t sequence_ = 0;
  std::string sizes_;
};

TEST_F(LargeJudgeTest, LargeOnesThatAreLostInARowAreALoss) {
  Steps(10, true, 9000);
  EXPECT_EQ(judge_.verdict(), PairVerdict::kAnswering);
  EXPECT_FALSE(judge_.unsettled());
  const Nanos broken = now_;
  while (!judge_.lost() && now_ - broken < kNanosPerSecond) Step(true, 1500);
  EXPECT_TRUE(judge_.lost());
  EXPECT_LE(now_ - broken, 400 * kMs);
  EXPECT_GE(judge_.missed_since(), broken);
  EXPECT_EQ(judge_.loss(), (LargeLoss{9000, 1500, LargeLoss::Way::kEither}));
}

TEST_F(LargeJudgeTest, APairThatNeverLetThemPassLosesThem) {
  Steps(40, true, 1450);
  EXPECT_TRUE(judge_.lost());
  EXPECT_EQ(judge_.loss().passed_bytes, 1450u) << sizes_;
}

TEST_F(LargeJudgeTest, FewInARowAreCongestion) {
  for (int i = 0; i < 100; ++i) {
    Steps(4, true, 1500);
    EXPECT_FALSE(judge_.lost()) << i;
    Steps(4, true, 9000);
  }
  EXPECT_FALSE(judge_.lost());
}

TEST_F(LargeJudgeTest, FrequentRandomLossNeedsMoreMisses) {
  // Nine of ten: such a pair is what its congestion, or its loss, makes it, and small ones show that.
  for (int i = 0; i < 200; ++i) Step(true, i % 2 == 0 ? 9000 : 1500);
  Steps(20, true, 1500);
  EXPECT_FALSE(judge_.lost()) << "ten full ones";
  Steps(60, true, 1500);
  EXPECT_TRUE(judge_.lost());
}

TEST_F(LargeJudgeTest, ASilentOrStoppedPeerShowsNothing) {
  Steps(10, true, 9000);
  Steps(200, false, 0);
  EXPECT_FALSE(judge_.lost() || judge_.unsettled());
  // It goes on, and answers what waited for it.
  small_answered_ = now_ - 20 * kMs;
  for (uint64_t sequence = 11; sequence <= sequence_; ++sequence) judge_.Answered(sequence, now_);
  judge_.Judge(now_, kPatience, small_answered_);
  EXPECT_FALSE(judge_.lost() || judge_.unsettled());
}

TEST_F(LargeJudgeTest, LargePacketsPassAgainWhenSeveralDid) {
  Steps(60, true, 1500);
  ASSERT_TRUE(judge_.lost());
  Step(true, 9000);
  Steps(5, true, 1500);
  Step(true, 9000);
  EXPECT_TRUE(judge_.lost()) << "two in different seconds are chance";
  const Nanos mended = now_;
  while (judge_.lost() && now_ - mended < 5 * kNanosPerSecond) Step(true, 9000);
  EXPECT_FALSE(judge_.lost());
  EXPECT_LE(now_ - mended, 500 * kMs);
  EXPECT_EQ(judge_.verdict(), PairVerdict::kAnswering);
  EXPECT_EQ(judge_.loss(), LargeLoss());
}

TEST_F(LargeJudgeTest, TheSecondLossInAMinuteIsProvedForLonger) {
  Nanos before = 0;
  for (int loss = 0; loss < 3; ++loss) {
    while (!judge_.lost()) Step(true, 1500);
    const Nanos mended = now_;
    while (judge_.lost()) Step(true, 9000);
    EXPECT_GT(now_ - mended, before);
    before = now_ - mended;
  }
}

TEST_F(LargeJudgeTest, TheWayThatLosesThemIsNamed) {
  // The peer receives them, and its answers are lost.
  for (int i = 0; i < 40; ++i) {
    Step(true, 1500);
    judge_.Arrived(sequence_);
  }
  EXPECT_EQ(judge_.loss().way, LargeLoss::Way::kBack);

  judge_.Reset();
  // The peer's own pings come.
  for (int i = 0; i < 40; ++i) {
    Step(true, 1500);
    judge_.PingCame(9000, now_);
  }
  EXPECT_EQ(judge_.loss().way, LargeLoss::Way::kThere);

  judge_.Reset();
  for (int i = 0; i < 40; ++i) {
    Step(true, 1500);
    judge_.PingCame(1500, now_);  // a smaller one shows nothing of large ones
  }
  EXPECT_EQ(judge_.loss().way, LargeLoss::Way::kEither);
}

TEST_F(LargeJudgeTest, AnotherSizeBeginsAgain) {
  Steps(60, true, 1500);
  ASSERT_TRUE(judge_.lost());
  judge_.SetFull(9000);
  EXPECT_TRUE(judge_.lost());
  judge_.SetFull(1500);
  EXPECT_EQ(judge_.verdict(), PairVerdict::kUnknown);
  Steps(10, true, 1500);
  EXPECT_EQ(judge_.verdict(), PairVerdict::kAnswering);
}

TEST_F(LargeJudgeTest, NobodyWaitsForWhatWasNotSent) {
  EXPECT_FALSE(judge_.Answered(7, now_));
  EXPECT_FALSE(judge_.Arrived(7));
  Step(true, 9000);
  EXPECT_FALSE(judge_.Answered(sequence_, now_)) << "twice";
  judge_.Forget();
  EXPECT_FALSE(judge_.Answered(sequence_, now_));
}

TEST(LargeJudge, SizesGoDownToTheLeast) {
  int steps = 0;
  for (size_t size = 9216; size != 0; ++steps) {
    const size_t next = NextSizeBelow(size);
    ASSERT_LT(next, size);
    size = next;
  }
  EXPECT_LE(steps, 12);
}

}  // namespace
}  // namespace r2cc::health
