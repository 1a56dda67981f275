#include "netplugin/transport/tcp/quick_ack_policy.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

TEST(QuickAckPolicy, SmallMessagesMayBeAcknowledgedLate) {
  QuickAckPolicy quick_ack;
  EXPECT_EQ(quick_ack.Read(false), true);
  EXPECT_EQ(quick_ack.Read(false), std::nullopt);
}

TEST(QuickAckPolicy, BulkOnANewConnectionChangesNothing) {
  QuickAckPolicy quick_ack;
  EXPECT_EQ(quick_ack.Read(true), std::nullopt);
}

TEST(QuickAckPolicy, BulkEndsItOnce) {
  QuickAckPolicy quick_ack;
  quick_ack.Read(false);
  EXPECT_EQ(quick_ack.Read(true), false);
  EXPECT_EQ(quick_ack.Read(true), std::nullopt);
  EXPECT_EQ(quick_ack.Read(false), true);
}

TEST(QuickAckPolicy, TheOptionIsSetAgainNowAndThen) {
  QuickAckPolicy quick_ack;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(quick_ack.Read(false), true) << round;
    for (int i = 1; i < tuning::kQuickAckSetEvery; ++i) EXPECT_EQ(quick_ack.Read(false), std::nullopt) << i;
  }
}

}  // namespace
}  // namespace r2cc::net
