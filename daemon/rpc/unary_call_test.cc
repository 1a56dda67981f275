#include "daemon/rpc/unary_call.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

TEST(PendingReplies, OneCallerAndAllAreBounded) {
  PendingReplies replies;
  constexpr size_t kPart = PendingReplies::kPerCallerMax / 2;
  EXPECT_TRUE(replies.Hold("uid 1", kPart));
  EXPECT_TRUE(replies.Hold("uid 1", kPart));
  EXPECT_FALSE(replies.Hold("uid 1", 1));
  for (size_t i = 1; i < PendingReplies::kPendingBytesMax / PendingReplies::kPerCallerMax; ++i)
    EXPECT_TRUE(replies.Hold("uid x" + std::to_string(i), PendingReplies::kPerCallerMax));
  EXPECT_FALSE(replies.Hold("uid 2", 1));
  replies.Release("uid 1", kPart);
  EXPECT_TRUE(replies.Hold("uid 2", kPart));
  EXPECT_FALSE(replies.Hold("uid 1", 1));
}

}  // namespace
}  // namespace r2cc::daemon
