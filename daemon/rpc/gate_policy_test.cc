#include "daemon/rpc/gate_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::daemon {
namespace {

constexpr Nanos kSecond = kNanosPerSecond;

GatePolicy::Admission AdmissionOf(int uid, size_t share_max = 16, size_t group_max = 128) {
  return {.share = "uid " + std::to_string(uid),
          .share_max = share_max,
          .group = "users",
          .group_max = group_max,
          .streams_per_second = 100,
          .streams_burst = 300};
}

class GatePolicyTest : public testing::Test {
 protected:
  // Admits up to `most`; how many were.
  size_t AdmitUpTo(const GatePolicy::Admission& admission, size_t most) {
    for (size_t i = 0; i < most; ++i) {
      const auto admitted = policy_.Admit(admission, now_);
      if (admitted.share == nullptr) {
        last_ = admitted.refusal;
        return i;
      }
      share_ = admitted.share;
    }
    return most;
  }

  GatePolicy policy_;
  Nanos now_ = kSecond;
  GatePolicy::Share* share_ = nullptr;  // of the last admitted
  GatePolicy::Refusal last_;
};

TEST_F(GatePolicyTest, GreetingsAreBoundedForEachAddressAndInAll) {
  for (size_t i = 0; i < GatePolicy::kGreetingsPerAddressMax; ++i) {
    ASSERT_EQ(policy_.JudgeGreeting("h0"), GatePolicy::Greeting::kTake);
    policy_.BeginGreeting("h0");
  }
  EXPECT_EQ(policy_.JudgeGreeting("h0"), GatePolicy::Greeting::kAddressHasMany);
  for (int host = 1; policy_.greetings() < GatePolicy::kGreetingsMax; ++host) policy_.BeginGreeting("h" + std::to_string(host));
  EXPECT_EQ(policy_.JudgeGreeting("another"), GatePolicy::Greeting::kTakeForOldest);
  EXPECT_EQ(policy_.JudgeGreeting("h0"), GatePolicy::Greeting::kAddressHasMany) << "an address with many drives out nobody";
  policy_.EndGreeting("h0");
  EXPECT_EQ(policy_.JudgeGreeting("h0"), GatePolicy::Greeting::kTake);
}

TEST_F(GatePolicyTest, AShareHasItsPlaces) {
  EXPECT_EQ(AdmitUpTo(AdmissionOf(1), 100), 16u);
  EXPECT_EQ(last_.reason, "too-many");
  EXPECT_EQ(last_.why, "uid 1 has 16 connections already");
  EXPECT_EQ(AdmitUpTo(AdmissionOf(2), 1), 1u);
  policy_.End(share_, now_);
  EXPECT_EQ(AdmitUpTo(AdmissionOf(2), 100), 16u);
}

// Eight users could take all places of the group, and the ninth had none.
TEST_F(GatePolicyTest, TheLastPlacesAreForThoseWhoHaveNone) {
  size_t taken = 0;
  for (int uid = 0; uid < 40; ++uid) taken += AdmitUpTo(AdmissionOf(uid + 1), 100);
  EXPECT_EQ(taken, 128u);
  EXPECT_EQ(last_.why, "there are 128 connections of users already");
  GatePolicy fresh;
  policy_ = std::move(fresh);
  for (int uid = 1; uid <= 6; ++uid) ASSERT_EQ(AdmitUpTo(AdmissionOf(uid), 100), 16u);
  EXPECT_EQ(AdmitUpTo(AdmissionOf(7), 100), 1u) << "96 of 128";
  EXPECT_EQ(last_.why, "the last 32 connections of users are reserved for callers without a connection, and uid 7 has 1");
  EXPECT_EQ(AdmitUpTo(AdmissionOf(8), 100), 1u);
  GatePolicy::Admission root = AdmissionOf(0);
  root.reserved = true;
  EXPECT_EQ(AdmitUpTo(root, 100), 16u);
}

TEST_F(GatePolicyTest, AConversationCostsAStream) {
  size_t admitted = 0;
  for (int i = 0; i < 1000; ++i) {
    if (AdmitUpTo(AdmissionOf(1), 1) == 0) continue;
    ++admitted;
    policy_.End(share_, now_);
  }
  EXPECT_EQ(admitted, 300u);
  EXPECT_EQ(last_.reason, "too-fast");
  now_ += kSecond;
  EXPECT_EQ(AdmitUpTo(AdmissionOf(1), 1), 1u);
}

TEST_F(GatePolicyTest, AShareIsForgottenWhenItsAllowanceIsWholeAgain) {
  ASSERT_EQ(AdmitUpTo(AdmissionOf(1), 1), 1u);
  now_ += 10 * GatePolicy::kShareKeptFor;
  policy_.ForgetShares(now_);
  EXPECT_EQ(policy_.shares(), 1u) << "it has a conversation";
  policy_.End(share_, now_);
  policy_.ForgetShares(now_ + GatePolicy::kShareKeptFor);
  EXPECT_EQ(policy_.shares(), 1u);
  policy_.ForgetShares(now_ + GatePolicy::kShareKeptFor + 1);
  EXPECT_EQ(policy_.shares(), 0u);
  const auto whole = AdmissionOf(1);
  EXPECT_GE(GatePolicy::kShareKeptFor / kSecond * whole.streams_per_second, whole.streams_burst);
}

TEST_F(GatePolicyTest, ALimitedNumberGetsTheReasonOfItsRefusal) {
  for (size_t i = 0; i < GatePolicy::kLeavingMax; ++i) ASSERT_TRUE(policy_.BeginLeaving());
  EXPECT_FALSE(policy_.BeginLeaving());
  policy_.EndLeaving();
  EXPECT_TRUE(policy_.BeginLeaving());
}

TEST_F(GatePolicyTest, DueTimes) {
  now_ = 1000 * kSecond;
  EXPECT_TRUE(policy_.TakeJudging(now_));
  EXPECT_FALSE(policy_.TakeJudging(now_ + GatePolicy::kJudgeInterval - 1));
  EXPECT_TRUE(policy_.TakeJudging(now_ + GatePolicy::kJudgeInterval));

  for (size_t i = 0; i + 1 < GatePolicy::kTrimAfter; ++i) policy_.CountEnd();
  EXPECT_FALSE(policy_.TakeTrimming(now_));
  policy_.CountEnd();
  EXPECT_TRUE(policy_.WantsTrimming());
  EXPECT_TRUE(policy_.TakeTrimming(now_));
  for (size_t i = 0; i < GatePolicy::kTrimAfter; ++i) policy_.CountEnd();
  EXPECT_FALSE(policy_.TakeTrimming(now_ + GatePolicy::kTrimInterval - 1));
  EXPECT_TRUE(policy_.TakeTrimming(now_ + GatePolicy::kTrimInterval));
}

}  // namespace
}  // namespace r2cc::daemon
