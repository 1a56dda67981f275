#include "netplugin/transport/tcp/acknowledgement_pace.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

TEST(AcknowledgementPace, OfSmallMessagesTheyMayBeLate) {
  AcknowledgementPace pace;
  EXPECT_EQ(pace.Read(false), true);
  EXPECT_EQ(pace.Read(false), std::nullopt);
}

TEST(AcknowledgementPace, OfBulkNothingIsSaidToANewConnection) {
  AcknowledgementPace pace;
  EXPECT_EQ(pace.Read(true), std::nullopt);
}

TEST(AcknowledgementPace, BulkEndsItOnce) {
  AcknowledgementPace pace;
  pace.Read(false);
  EXPECT_EQ(pace.Read(true), false);
  EXPECT_EQ(pace.Read(true), std::nullopt);
  EXPECT_EQ(pace.Read(false), true);
}

TEST(AcknowledgementPace, TheKernelIsToldAgainNowAndThen) {
  AcknowledgementPace pace;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(pace.Read(false), true) << round;
    for (int i = 1; i < AcknowledgementPace::kToldEvery; ++i) EXPECT_EQ(pace.Read(false), std::nullopt) << i;
  }
}

}  // namespace
}  // namespace r2cc::net
