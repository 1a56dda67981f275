#include "netplugin/link/retry_policy.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr Nanos kMs = kNanosPerMs;

// From `now` until it is due, by milliseconds.
Nanos WaitOf(const RetryPolicy& retry, Nanos now) {
  Nanos wait = 0;
  while (!retry.IsDue(now + wait)) wait += kMs;
  return wait;
}

// A back-off and up to a quarter of it more.
void ExpectWait(const RetryPolicy& retry, Nanos now, Nanos back_off) {
  EXPECT_GE(WaitOf(retry, now), back_off);
  EXPECT_LE(WaitOf(retry, now), back_off + back_off / 4 + kMs);
}

TEST(RetryPolicy, TheFirstAttemptIsDueAtOnce) {
  const RetryPolicy retry(1, 0);
  EXPECT_TRUE(retry.IsDue(0));
  EXPECT_FALSE(retry.has_failed());
  EXPECT_EQ(retry.attempt_limit(), tuning::kAttemptLeast);
}

TEST(RetryPolicy, EachFailedAttemptDoublesTheWaitAndHowLongTheNextMayTake) {
  RetryPolicy retry(1, 0);
  Nanos now = kNanosPerSecond;
  for (const Nanos back_off : {50 * kMs, 100 * kMs, 200 * kMs, 400 * kMs, 800 * kMs, 1600 * kMs, 2000 * kMs, 2000 * kMs}) {
    retry.Began();
    retry.AttemptFailed(now);
    ExpectWait(retry, now, back_off);
    EXPECT_EQ(retry.attempt_limit(), std::max(kNanosPerSecond, 2 * back_off));
    EXPECT_TRUE(retry.has_failed());
    now += kNanosPerSecond;
  }
}

TEST(RetryPolicy, TheWaitStartsAgainAfterASteadyLinkAndDoublesAfterAShortOne) {
  RetryPolicy retry(1, 0);
  for (int i = 0; i < 4; ++i) retry.AttemptFailed(0);
  retry.Lost(tuning::kRetryWaitMost - 1, RetryPolicy::Loss::kFlap, 0);
  ExpectWait(retry, 0, 800 * kMs);
  retry.Lost(tuning::kRetryWaitMost, RetryPolicy::Loss::kFlap, 0);
  ExpectWait(retry, 0, 50 * kMs);
  retry.AttemptFailed(0);
  ExpectWait(retry, 0, 100 * kMs);
}

TEST(RetryPolicy, AFlappingLinkIsHeldOffAndARetiredOneIsNot) {
  for (const auto loss : {RetryPolicy::Loss::kRetired, RetryPolicy::Loss::kFlap}) {
    RetryPolicy retry(1, 0);
    for (int i = 0; i < 20; ++i) retry.Lost(tuning::kRetryWaitMost, loss, kNanosPerSecond);
    EXPECT_EQ(WaitOf(retry, kNanosPerSecond) >= tuning::kFlapHoldMost, loss == RetryPolicy::Loss::kFlap);
  }
}

// Each time it is back it stalls, and the job loses the silence.
TEST(RetryPolicy, TenMinutesOfALinkThatStallsUnderLoadCostLessThanTwoSeconds) {
  constexpr Nanos kSilence = 250 * kMs;
  RetryPolicy retry(1, 0);
  Nanos stalled = 0;
  for (Nanos now = kNanosPerSecond; now < 601 * kNanosPerSecond; now += 10 * kMs) {
    if (!retry.IsDue(now)) continue;
    retry.Began();
    // It is up for a while, longer than what counts as steady, and stalls.
    now += tuning::kRetryWaitMost + kSilence;
    stalled += kSilence;
    retry.Lost(tuning::kRetryWaitMost + kSilence, RetryPolicy::Loss::kStall, now);
  }
  EXPECT_GE(stalled, 4 * kSilence) << "it is tried again";
  EXPECT_LE(stalled, 2 * kNanosPerSecond);
}

TEST(RetryPolicy, AStallIsForgottenAfterFiveSoundMinutes) {
  RetryPolicy retry(1, 0);
  for (int i = 0; i < 6; ++i) retry.Lost(0, RetryPolicy::Loss::kStall, 0);
  EXPECT_GE(WaitOf(retry, 0), 200 * kNanosPerSecond);
  const Nanos later = 1000 * kNanosPerSecond;
  retry.Lost(tuning::kStallHoldMost, RetryPolicy::Loss::kStall, later);
  EXPECT_LE(WaitOf(retry, later), 2 * tuning::kSlowRetryLeast);
  // A word that its rail is up does not shorten the wait; that it is the last way to the peer does.
  retry.Restart(later);
  EXPECT_GE(WaitOf(retry, later), tuning::kSlowRetryLeast);
  retry.IgnoreDamping(later);
  EXPECT_LE(WaitOf(retry, later), 2 * tuning::kRetryWaitMost);
}

TEST(RetryPolicy, ALinkThatMayWorkAgainWaitsForTheDampingAlone) {
  RetryPolicy calm(1, 0), flapping(1, 0);
  for (int i = 0; i < 9; ++i) calm.AttemptFailed(0);
  for (int i = 0; i < 20; ++i) flapping.Lost(tuning::kRetryWaitMost, RetryPolicy::Loss::kFlap, 0);
  calm.Restart(0);
  EXPECT_TRUE(calm.IsDue(0));
  flapping.Restart(kNanosPerSecond);
  EXPECT_EQ(WaitOf(flapping, kNanosPerSecond), tuning::kFlapHoldMost) << "from now on, not since it was lost";
}

TEST(RetryPolicy, HasteNeverMakesItLater) {
  RetryPolicy retry(1, 0);
  for (int i = 0; i < 20; ++i) retry.Lost(tuning::kRetryWaitMost, RetryPolicy::Loss::kFlap, 0);
  const Nanos due = WaitOf(retry, 0);
  retry.Hasten(kNanosPerSecond);
  EXPECT_EQ(WaitOf(retry, 0), due);
  RetryPolicy calm(1, 0);
  for (int i = 0; i < 9; ++i) calm.AttemptFailed(0);
  calm.Hasten(kMs);
  EXPECT_TRUE(calm.IsDue(kMs));
}

TEST(RetryPolicy, TheLastWayIsNotKeptOutByDampingButWaitsItsBackOff) {
  RetryPolicy retry(1, 0);
  for (int i = 0; i < 20; ++i) retry.Lost(tuning::kRetryWaitMost, RetryPolicy::Loss::kFlap, 0);
  retry.IgnoreDamping(0);
  ExpectWait(retry, 0, tuning::kRetryWaitLeast);
  retry.Restart(kNanosPerSecond);
  retry.IgnoreDamping(kNanosPerSecond);
  ExpectWait(retry, kNanosPerSecond, tuning::kRetryWaitLeast);
}

TEST(RetryPolicy, LinksThatFailedTogetherDoNotComeAgainTogether) {
  RetryPolicy one(1, 0), other(1, 1);
  one.AttemptFailed(0);
  other.AttemptFailed(0);
  EXPECT_NE(WaitOf(one, 0), WaitOf(other, 0));
}

}  // namespace
}  // namespace r2cc::net
